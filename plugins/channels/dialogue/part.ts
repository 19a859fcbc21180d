/** One message's worth of a text, in a format that the platform takes. */
import type { Format } from '../adapter.ts'
import { convert, escape, lengthOf } from './markup.ts'
import { nextPiece } from './split.ts'
import type { Place } from './split.ts'

export interface Part {
	text: string
	/** Where the next one goes on. */
	next: Place
}

/** Below it nothing is gained by cutting smaller: then the text is shown as it is written. */
const LEAST_ROOM = 64

/** The part of `source`, Markdown, that begins at `from`; '' where nothing but blanks is left. The same arguments make the same part. */
export async function nextPart(source: string, from: Place, { markup, max_length }: Format): Promise<Part> {
	if (markup === 'markdown') return nextPiece(source, from, max_length)
	for (let room = max_length; ;) {
		const piece = nextPiece(source, from, room)
		const text = await convert(piece.text, markup)
		const length = lengthOf(text, markup)
		if (length <= max_length && text.trim() !== '') return { text, next: piece.next }
		// Nothing that shows, such as an empty list, or columns that need more room than there is.
		if (text.trim() === '' || room < LEAST_ROOM) return asWritten(source, from, markup, Math.min(room, max_length))
		room = Math.min(room - 1, Math.floor((room * max_length * 0.95) / length))
	}
}

function asWritten(source: string, from: Place, markup: 'html' | 'plain', room: number): Part {
	const piece = nextPiece(source, from, Math.max(room, 1))
	if (markup === 'plain') return piece
	return { text: escape(piece.text), next: piece.next }
}
