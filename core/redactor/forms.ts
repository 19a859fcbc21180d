/**
 * How a secret's text may be spelt. The matcher does not look at the case of ASCII letters, and it reads over line breaks,
 * so that neither makes a form of its own.
 */

/** A form has at least this many code units. */
export const SHORTEST = 8
/** A line of a longer value that stands for itself, such as one of a PEM key. */
const LINE = 20
/** JSON in JSON in JSON: a tool's result within an event within a line of the log. */
const JSON_LEVELS = 3

/**
 * The forms of a value, without surrounding white space, each once:
 * - as it is, and each of its lines that has 20 characters or more and no spaces (the `-----BEGIN …-----` of a key aside)
 * - in JSON strings, up to three deep; in JSON of ASCII characters only; in HTML and XML
 * - base64 and base64url at each of the three offsets: what of the encoding does not depend on its neighbours
 * - hexadecimal
 * - URL-encoded as a component, a form's field, an address, or byte by byte
 */
export function formsOf(value: string): string[] {
	const text = value.trim()
	const bytes = Buffer.from(text)
	const lines = text.split(lineBreak).map((line) => line.trim())
	const spellings = [withoutBreaks(text), ...(lines.length > 1 ? lines.filter(standsForItself) : [])]
	const forms = [
		...spellings,
		...spellings.flatMap(inJson),
		...spellings.map(inAsciiJson),
		...spellings.map(inHtml),
		...[0, 1, 2].flatMap((offset) => inBase64(bytes, offset)),
		bytes.toString('hex'),
		...percentSets.map((kept) => inPercents(bytes, kept)),
		inPercents(bytes, formKept).replaceAll('%20', '+'),
	]
	return [...new Set(forms)].filter((form) => form.length >= SHORTEST)
}

const lineBreak = /[\r\n]+[ \t]*/

/**
 * The matcher reads over line breaks in a text, from the eighth character of a form on. Lines at the beginning that are
 * shorter than that give way.
 */
function withoutBreaks(text: string): string {
	const lines = text.split(lineBreak)
	const first = lines.findIndex((line) => line.length >= SHORTEST)
	return first < 0 ? text : lines.slice(first).join('')
}

function standsForItself(line: string): boolean {
	return line.length >= LINE && !/\s/.test(line) && !line.startsWith('-----')
}

function inJson(text: string): string[] {
	const forms: string[] = []
	for (let form = text; forms.length < JSON_LEVELS; forms.push(form)) form = JSON.stringify(form).slice(1, -1)
	return forms
}

function inAsciiJson(text: string): string {
	const escaped = JSON.stringify(text).slice(1, -1)
	// oxlint-disable-next-line no-control-regex -- everything that is not ASCII
	return escaped.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function inHtml(text: string): string {
	return text.replace(/[&<>"']/g, (character) => entities[character] as string)
}

/** `offset`: how many bytes stand before it in the group of three. */
function inBase64(bytes: Buffer, offset: number): string[] {
	const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64url')
	// A character holds six bits; the first and the last may hold bits of a neighbour.
	const certain = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6))
	return [certain, certain.replaceAll('-', '+').replaceAll('_', '/')]
}

/** What encoders leave as it is: encodeURIComponent, RFC 3986, encodeURI, and those that encode every byte. */
const percentSets = [/[\w.!~*'()-]/, /[\w.~-]/, /[\w.!~*'();/?:@&=+$,#-]/, /^$/]
/** application/x-www-form-urlencoded */
const formKept = /[\w*.-]/

function inPercents(bytes: Buffer, kept: RegExp): string {
	let form = ''
	for (const byte of bytes) {
		const character = String.fromCharCode(byte)
		form += byte < 0x80 && kept.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
	}
	return form
}
