/** A shorter value may occur in ordinary text, and is not redacted. In UTF-16 code units, without surrounding white space. */
export const SHORTEST = 8
/** A tool's result within an event within a line of the log. */
const JSON_LEVELS = 3

/**
 * The encodings in which a value is redacted, each as the exact text to find. This list is what the documentation promises
 * (docs/security.md): nothing else is found, such as other letter case, wrapped lines or a part of the value.
 *
 * - as it is, with line breaks as LF or CRLF
 * - within a JSON string, up to three levels deep, with the escapes that common libraries add to those that JSON needs
 * - base64 and base64url, at any offset within longer encoded data. The characters at both ends that also hold bits of
 *   the data around them do not count.
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

/** A character as JSON writes it where it need not be escaped. */
type Escape = (character: string) => string

const small: Escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
const capital: Escape = (character) => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`

/** What the libraries of servers escape, besides what JSON needs. */
const jsonWriters: readonly ((json: string) => string)[] = [
	(json) => json,
	// Go
	(json) => json.replace(/[<>&\u2028\u2029]/g, small),
	// Python
	(json) => json.replace(/[^ -~]/g, small),
	// PHP
	(json) => json.replaceAll('/', '\\/').replace(/[^\0-\x7f]/g, small),
	// Java (Gson)
	(json) => json.replace(/[<>&='\u2028\u2029]/g, small),
	// .NET
	(json) => json.replace(/\\"|[<>&'+`\x7f]|[^\0-\x7f]/g, (found) => capital(found.at(-1) ?? '')),
]

/** Of a text in the JSON of another server, which the gateway may have put into JSON of its own. */
function inJson(text: string): string[] {
	const plain = plainJson(text)
	// One that escapes nothing here writes what the first one writes, on every level.
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

/** `offset`: how many bytes of the group of three come before it. */
function inBase64(bytes: Buffer, offset: number): string[] {
	const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64url')
	// A character holds six bits; the first and the last may hold bits of a neighbour.
	const own = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
	return [own, own.replaceAll('-', '+').replaceAll('_', '/')]
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
