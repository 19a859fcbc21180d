/** Renders Markdown that arrives in pieces. Each piece is shown once: nothing on the screen is redrawn. */
import { Lexer } from 'marked'
import type { Token } from 'marked'
import { renderMarkdown } from './markdown.ts'
import type { AnswerText } from './plain-stream.ts'
import { paint } from './style.ts'

/** A line that may still become the beginning of a block, such as a list or a rule. */
const undecided = /(?:^|\n)[\s\-+*=#>|`~_\d.)]*$/

export function markdownStream(columns: () => number): AnswerText {
	/** The text from the beginning of the first block that may still grow. */
	let source = ''
	/** The rendered part of `source` that is on the screen. */
	let shown = ''
	let isFirst = true
	/** Length of the source at which it is parsed again: a long block is not parsed for every piece. */
	let due = 0

	/** Returns what was added since the last call. */
	function render(open: boolean): string {
		const settled = open ? source.replace(undecided, '') : source
		const tokens = Lexer.lex(settled, { gfm: true, breaks: true })
		const last = open ? tokens.findLastIndex(({ type }) => type !== 'space') : tokens.length
		const whole = tokens.slice(0, Math.max(0, last))
		let text = ''
		for (const token of whole) text += block([token], false)
		if (open && last >= 0) {
			source = source.slice(whole.reduce((sum, { raw }) => sum + raw.length, 0))
			text += block(tokens.slice(last), true)
		}
		return text
	}

	function block(tokens: Token[], open: boolean): string {
		const rendered = renderMarkdown(tokens, { width: columns(), open })
		const gap = shown === '' && rendered !== '' && !isFirst ? '\n\n' : ''
		const text = gap + addedTo(shown, rendered)
		if (rendered !== '') shown = rendered
		if (shown !== '') isFirst = false
		if (!open) shown = ''
		return text
	}

	return {
		write(piece) {
			source += piece
			if (source.length < due || source.endsWith('\r')) return ''
			source = source.replaceAll('\r\n', '\n')
			const text = render(true)
			due = source.length + (source.length >> 7)
			return text
		},
		flush() {
			const text = render(false)
			source = ''
			shown = ''
			isFirst = true
			due = 0
			return text
		},
	}
}

/** The part of a text that follows what is already shown. */
function addedTo(before: string, text: string): string {
	if (text.startsWith(before)) return text.slice(before.length)
	// A line turned out to be a heading, or a character that was shown began emphasis or code: the words are the same.
	const seen = bare(before)
	let found = ''
	const characters = Array.from(text)
	while (characters.length > 0 && seen.startsWith(found + bare(characters[0] ?? '')))
		found += bare(characters.shift() ?? '')
	return found === seen ? characters.join('') : `\n\n${text}`
}

/** Without colours, white space and Markdown characters. */
function bare(text: string): string {
	return paint(text, false).replaceAll(/[\s*_~`[\]#=-]/g, '')
}
