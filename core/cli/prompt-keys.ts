/** Converts keyboard input for readline: a line break within a prompt becomes one special character. */
import { StringDecoder } from 'node:string_decoder'
import { Transform } from 'node:stream'
import { afterGap } from './after-gap.ts'

/** Represents a line break while a prompt is edited, since readline only has single lines. */
export const BREAK = '⏎'

/** Makes the terminal mark pasted text (bracketed paste), so that its line ends do not count as Enter. */
export const MARK_PASTE = '\x1b[?2004h'
export const UNMARK_PASTE = '\x1b[?2004l'

const PASTE_BEGIN = '\x1b[200~'
const PASTE_END = '\x1b[201~'
/** Alt-Enter, and Shift-Enter on terminals that distinguish it from Enter. */
const BREAK_KEYS = ['\x1b\r', '\x1b\n', '\x1b[13;2u', '\x1b[27;2;13~']
const SEQUENCES = [PASTE_BEGIN, PASTE_END, ...BREAK_KEYS]

/** A terminal that does not mark pasted text sends it in few pieces, one right after another. */
const PASTE_GAP_MS = 30

type Keyboard = NodeJS.ReadableStream & { setRawMode?(raw: boolean): unknown }

/** Reads `stdin` until the result is destroyed, which pauses `stdin`. */
export function promptKeys(stdin: Keyboard): Transform & { setRawMode(raw: boolean): void } {
	const decoder = new StringDecoder('utf8')
	/** The beginning of a sequence whose rest is in the next piece. */
	let partial = ''
	let isPasting = false
	/** Cancels the Enter that the last line end of unmarked text becomes unless more follows. */
	let cancelEnter: (() => void) | undefined

	function take(piece: string): string {
		let text = partial + piece
		partial = ''
		let keys = ''
		if (cancelEnter) {
			cancelEnter()
			cancelEnter = undefined
			keys += BREAK
		}
		const isUnmarkedPaste = !text.includes('\x1b') && /[\r\n](?=[^\r\n])/.test(text)
		while (text !== '') {
			const sequence = SEQUENCES.find((one) => text.startsWith(one))
			if (sequence === undefined && SEQUENCES.some((one) => text.length > 1 && one.startsWith(text))) {
				partial = text
				break
			}
			if (sequence !== undefined) {
				if (sequence === PASTE_BEGIN || sequence === PASTE_END) isPasting = sequence === PASTE_BEGIN
				else keys += BREAK
				text = text.slice(sequence.length)
				continue
			}
			const end = /^(?:\r\n|\r|\n)/.exec(text)?.[0]
			const isLast = end !== undefined && text.length === end.length
			if (end !== undefined && isUnmarkedPaste && !isPasting && isLast) {
				cancelEnter = afterGap(PASTE_GAP_MS, () => {
					cancelEnter = undefined
					input.push('\r')
				})
			} else if (end !== undefined && (isPasting || isUnmarkedPaste)) keys += BREAK
			// Control characters in pasted text would act as keys.
			else if (isPasting && /^\p{Cc}/u.test(text)) keys += text[0] === '\t' ? '    ' : ''
			else keys += end ?? text[0]
			text = text.slice(end?.length ?? 1)
		}
		return keys
	}

	const input = new Transform({
		decodeStrings: true,
		readableObjectMode: false,
		transform(chunk: Buffer, _encoding, done) {
			done(null, take(decoder.write(chunk)))
		},
		destroy(error, done) {
			cancelEnter?.()
			stdin.unpipe(input)
			stdin.pause()
			done(error)
		},
	})
	stdin.pipe(input)
	return Object.assign(input, { setRawMode: (raw: boolean) => void stdin.setRawMode?.(raw) })
}
