/** Splits Markdown into parts that a platform accepts, each of which can be read on its own. */

/** An open code block. */
export interface Fence {
	/** Such as three backticks; the closing marker is at least as long. */
	marker: string
	/** The text after the marker, such as the language. */
	info: string
	/** The indentation of the marker, which is removed from the block's lines. */
	indent: number
}

/** A position in a text. */
export interface SplitPosition {
	offset: number
	/** The code block that is open there. */
	fence: Fence | null
}

export interface MessagePart {
	/** Empty if only white space remains. */
	text: string
	/** Where the next part begins. */
	next: SplitPosition
}

/** Breaks that use less than this share of the limit are avoided. */
const MIN_FILL = 1 / 3
/** Limit of the info text that is repeated in the next part. */
const INFO_LIMIT = 32
/** A longer marker is treated as a drawn line. */
const MARKER_LIMIT = 32
/** Code units around a cut that are searched for boundaries of graphemes. */
const CLUSTER_WINDOW = 64

/**
 * The next part of `text`, of at most `limit` UTF-16 code units (32 or more). Ends, in order of preference, at a paragraph, a
 * line, a sentence, a space, or between two graphemes. Drops only white space at the cuts. A code block that is cut is closed
 * before the cut and reopened after it. Reads only about `limit` code units.
 */
export function nextMarkdownPart(text: string, from: SplitPosition, limit: number): MessagePart {
	for (let place = from; ;) {
		const offset = place.fence ? place.offset : skipBlankLines(text, place.offset)
		const part = cutPart(text, { offset, fence: place.fence }, limit)
		if (part.text !== '' || part.next.offset >= text.length) return part
		place = part.next
	}
}

/** The code block that is open after this line. */
export function fenceAfter(fence: Fence | null, line: string): Fence | null {
	const found = /^([ \t]*)(`{3,}|~{3,})([^\n]*)$/.exec(line)
	if (!found) return fence
	const [, blanks = '', marker = '', info = ''] = found
	if (marker.length > MARKER_LIMIT) return fence
	if (fence) {
		const closes = marker[0] === fence.marker[0] && marker.length >= fence.marker.length && info.trim() === ''
		return closes ? null : fence
	}
	if (marker.startsWith('`') && info.includes('`')) return null // code within a line
	return { marker, info: info.trim(), indent: blanks.length }
}

/** Closes a code block that is still open, so that appended text does not become part of it. */
export function closeFence(text: string): string {
	let fence: Fence | null = null
	for (const line of text.split('\n')) fence = fenceAfter(fence, line)
	return fence ? `${text}${text.endsWith('\n') ? '' : '\n'}${fence.marker}` : text
}

function cutPart(text: string, { offset, fence: wanted }: SplitPosition, limit: number): MessagePart {
	// Do not repeat a marker that leaves no room for content.
	const fence = wanted && 2 * wanted.marker.length + INFO_LIMIT + 2 > limit / 2 ? null : wanted
	const opening = fence ? `${fence.marker}${fence.info.slice(0, INFO_LIMIT).toWellFormed()}\n` : ''
	const room = limit - opening.length
	const view = text.slice(offset, offset + room + CLUSTER_WINDOW)
	const { end, skip, fence: open } = chooseBreak(view, fence, room)
	const body = dedent(view.slice(0, end), fence)
	const next: SplitPosition = { offset: Math.min(offset + end + skip, text.length), fence: open }
	if (!fence && body.trim() === '') return { text: '', next }
	const closed = open ? `${opening}${body}${body.endsWith('\n') ? '' : '\n'}${open.marker}` : opening + body.trimEnd()
	return { text: closed, next }
}

interface Break {
	end: number
	/** Code units after the end that are skipped. */
	skip: number
	fence: Fence | null
}

/** Where to end a part. `view`: as much of the text as fits, plus a window beyond it. */
function chooseBreak(view: string, fence: Fence | null, room: number): Break {
	const isRest = view.length <= room + 1
	let paragraph: Break | undefined
	let line: Break | undefined
	let poor: Break | undefined
	/** The first line that does not fit. */
	let longLine: { start: number; fence: Fence | null } | undefined
	let open = fence
	for (let start = 0; start < view.length;) {
		const newline = view.indexOf('\n', start)
		const end = newline < 0 ? view.length : newline
		if (end > room) {
			longLine ??= { start, fence: open }
			break
		}
		const after = fenceAfter(open, view.slice(start, end))
		if (end + closing(after) <= room) {
			const found = { end, skip: 1, fence: after }
			if (isRest && end + 1 >= view.length) return found
			const hasContent = end > 0 && !(after && !open) // the part would have only the marker of a block that begins here
			if (hasContent) line = found
			else poor = found
			if (hasContent && !after && isBlankLine(view, end + 1)) paragraph = found
			longLine = undefined
		} else {
			longLine ??= { start, fence: open }
		}
		open = after
		start = end + 1
	}
	const enough = (one: Break | undefined): one is Break => one !== undefined && one.end >= room * MIN_FILL
	if (enough(paragraph)) return paragraph
	if (enough(line)) return line
	if (!longLine) return line ?? poor ?? { end: room, skip: 0, fence: open }

	const { start, fence: before } = longLine
	const newline = view.indexOf('\n', start)
	const lineEnd = newline < 0 ? view.length : newline
	// A line that is cut may open a block that the complete line would not.
	const marker = /^[ \t]*(`{3,32}|~{3,32})/.exec(view.slice(start, lineEnd))?.[1]
	const most = Math.min(room - Math.max(closing(before), marker ? marker.length + 1 : 0), lineEnd)
	const cutAt = (end: number): Break => ({
		end,
		skip: isBlank(view[end]) ? 1 : 0,
		fence: fenceAfter(before, view.slice(start, end)),
	})
	const inLine = [before ? 0 : sentenceBefore(view, start, most), blankBefore(view, start, most)]
		.filter((end) => end > start)
		.map(cutAt)
	const cut = inLine.find(enough) ?? line ?? inLine[0]
	if (cut) return cut
	return most > start || !poor ? cutAt(characterBefore(view, start, Math.max(most, start + 1))) : poor
}

/** Code units needed to close the block. */
function closing(fence: Fence | null): number {
	return fence ? fence.marker.length + 1 : 0
}

function skipBlankLines(text: string, from: number): number {
	let start = from
	for (let at = from; at < text.length; at++) {
		if (text[at] === '\n') start = at + 1
		else if (!isBlank(text[at])) return start
	}
	return text.length
}

function isBlankLine(view: string, at: number): boolean {
	for (let i = at; i < view.length; i++) {
		if (view[i] === '\n') return true
		if (!isBlank(view[i])) return false
	}
	return false
}

function isBlank(character: string | undefined): boolean {
	return character === ' ' || character === '\t' || character === '\n' || character === '\r'
}

function sentenceBefore(view: string, from: number, most: number): number {
	for (let end = Math.min(most, view.length - 1); end > from; end--) {
		const last = view[end - 1] ?? ''
		if ('。！？'.includes(last) || ('.!?…'.includes(last) && isBlank(view[end]))) return end
	}
	return 0
}

function blankBefore(view: string, from: number, most: number): number {
	for (let end = Math.min(most, view.length - 1); end > from; end--) if (isBlank(view[end])) return end
	return 0
}

/** The last grapheme boundary after `start`, at or before `most`. */
function characterBefore(view: string, start: number, most: number): number {
	const from = Math.max(start, most - CLUSTER_WINDOW)
	let end = 0
	for (const { index } of graphemes().segment(view.slice(from, most + CLUSTER_WINDOW))) {
		if (from + index > most) break
		if (index > 0) end = from + index // the first boundary is only that of the window
	}
	if (end === 0) end = most
	const isInPair = /[\uD800-\uDBFF]/.test(view[end - 1] ?? '') && /[\uDC00-\uDFFF]/.test(view[end] ?? '')
	return isInPair && end - 1 > start ? end - 1 : end
}

let segmenter: Intl.Segmenter | undefined

function graphemes(): Intl.Segmenter {
	return (segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' }))
}

/** Removes the block's indentation from its lines, since the part begins with an unindented marker. */
function dedent(body: string, fence: Fence | null): string {
	if (!fence || fence.indent === 0) return body
	const lines = body.split('\n')
	for (const [n, line] of lines.entries()) {
		const blanks = /^[ \t]*/.exec(line)?.[0].length ?? 0
		lines[n] = line.slice(Math.min(blanks, fence.indent))
		if (fenceAfter(fence, line) === null) break
	}
	return lines.join('\n')
}
