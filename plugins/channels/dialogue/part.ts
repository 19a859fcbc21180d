/** Cuts a text into parts that fit into one message of a format. */
import type { Format } from '../adapter.ts'
import { convert, escape, lengthOf } from './markup.ts'
import { nextMarkdownPart } from './split.ts'
import type { MessagePart, SplitPosition } from './split.ts'

/** If no conversion fits in this limit, the text is sent unconverted. */
const MIN_ROOM = 64

/** Maximum UTF-8 bytes of one code unit: unescaped, and escaped as in `&quot;`. */
const UNIT_BYTES = 3
const ESCAPED_BYTES = 6

/** The part of `source` (Markdown) that begins at `from`; '' if only white space remains. Deterministic. */
export async function nextPart(source: string, from: SplitPosition, format: Format): Promise<MessagePart> {
	const { markup, max_length } = format
	for (let room = max_length; ;) {
		const part = nextMarkdownPart(source, from, room)
		const text = markup === 'markdown' ? part.text : await convert(part.text, markup)
		const excess = excessOf(text, format)
		if (excess <= 1 && (markup === 'markdown' || text.trim() !== '')) return { text, next: part.next }
		// Nothing is visible, as for an empty list, or table columns need more room.
		if (text.trim() === '' || room < MIN_ROOM)
			return asWritten(source, from, { ...format, max_length: Math.min(room, max_length) })
		room = Math.min(room - 1, Math.floor((room * 0.95) / excess))
	}
}

/** The length of the text relative to the stricter limit of the format; more than 1 is too long. */
function excessOf(text: string, { markup, max_length, max_bytes = Infinity }: Format): number {
	const length = markup === 'markdown' ? text.length : lengthOf(text, markup)
	return Math.max(length / max_length, Buffer.byteLength(text) / max_bytes)
}

function asWritten(
	source: string,
	from: SplitPosition,
	{ markup, max_length, max_bytes = Infinity }: Format,
): MessagePart {
	const bytes = Math.floor(max_bytes / (markup === 'html' ? ESCAPED_BYTES : UNIT_BYTES))
	const part = nextMarkdownPart(source, from, Math.max(Math.min(max_length, bytes), 1))
	return { text: markup === 'html' ? escape(part.text) : part.text, next: part.next }
}
