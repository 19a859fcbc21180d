import { jsonEscape } from '../util/json-escape.ts'

/** Values shorter than this, in UTF-16 code units without surrounding white space, may occur in ordinary text and are not redacted. */
export const SHORTEST = 8
/** For example a tool's result in an event in a log line. */
const JSON_LEVELS = 3

/**
 * The encodings in which a value is redacted, each as the exact text to find. docs/security.md promises this list. Nothing else is
 * found, such as another letter case, wrapped lines or a part of the value.
 *
 * - unencoded, with line breaks as LF or CRLF
 * - within a JSON string, up to three levels deep, with the escapes that common libraries add to those that JSON needs
 * - base64 and base64url, at any offset within longer encoded data, without the characters at both ends that also encode bits
 *   of the surrounding data
 * - hexadecimal, in lower or upper case
 * - URL-encoded by encodeURIComponent, by RFC 3986 or as a form field, with the hexadecimal digits in either case
 */
export function formsOf(value: string): string[] {
	const lines = value.replaceAll('\r\n', '\n')
	const texts = [lines, lines.replaceAll('\n', '\r\n')]
	const forms = texts.flatMap((text) => {
		const bytes = Buffer.from(text)
		const hex = bytes.toString('hex')
		return [
			text,
			...inJson(text),
			...[0, 1, 2].flatMap((offset) => inBase64(bytes, offset)),
			hex,
			hex.toUpperCase(),
			...inUrl(text.toWellFormed()),
		]
	})
	return [...new Set(forms)].filter((form) => form.length >= SHORTEST)
}

/** Escapes a character that JSON allows unescaped. */
type Escape = (character: string) => string

const capital: Escape = (character) => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`

/** The additional escapes of common JSON libraries. */
const jsonWriters: readonly ((json: string) => string)[] = [
	(json) => json,
	// Go
	(json) => json.replace(/[<>&\u2028\u2029]/g, jsonEscape),
	// Python
	(json) => json.replace(/[^ -~]/g, jsonEscape),
	// PHP
	(json) => json.replaceAll('/', '\\/').replace(/[^\0-\x7f]/g, jsonEscape),
	// Java (Gson)
	(json) => json.replace(/[<>&='\u2028\u2029]/g, jsonEscape),
	// .NET
	(json) => json.replace(/\\"|[<>&'+`\x7f]|[^\0-\x7f]/g, (found) => capital(found.at(-1) ?? '')),
]

/** The forms of a text in the JSON of another server, which may be nested in JSON of the gateway. */
function inJson(text: string): string[] {
	const plain = plainJson(text)
	// A library that escapes nothing in this text writes the same as the first one, on every level.
	const writers = jsonWriters.filter((escaped, at) => at === 0 || escaped(plain) !== plain)
	return writers.flatMap((escaped) => {
		const forms: string[] = []
		for (let inner = text, level = 0; level < JSON_LEVELS; level++) {
			inner = escaped(plainJson(inner))
			for (let form = inner, outer = level; outer < JSON_LEVELS; outer++, form = plainJson(form)) forms.push(form)
		}
		return forms
	})
}

function plainJson(text: string): string {
	return JSON.stringify(text).slice(1, -1)
}

/** `offset`: the number of bytes before it in its group of three. */
function inBase64(bytes: Buffer, offset: number): string[] {
	const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64url')
	// A character encodes six bits; the first and the last may include bits of a neighbour.
	const inner = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
	return [inner, inner.replaceAll('-', '+').replaceAll('_', '/')]
}

function inUrl(text: string): string[] {
	const component = encodeURIComponent(text)
	const strict = component.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
	const field = new URLSearchParams({ '': text }).toString().slice(1)
	return [component, strict, field].flatMap((form) => [
		form,
		form.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase()),
	])
}
