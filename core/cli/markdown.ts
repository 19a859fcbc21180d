/**
 * Renders marked's tokens as text for a terminal. Colours are the marks of style.ts, text from outside is escaped, and only code
 * and tables may be wider than `width`.
 *
 * An `open` text is incomplete. Only the part that no later piece can change is rendered, so that each result begins with the
 * previous one and the screen is never redrawn.
 */
import type { Token, Tokens } from 'marked'
import { plain, widthOf } from './plain.ts'
import { styled } from './style.ts'
import type { StyleName } from './style.ts'

interface Extent {
	width: number
	open: boolean
}

/** The blocks, separated by empty lines, without a line end after the last one. */
export function renderMarkdown(tokens: Token[], extent: Extent): string {
	return blocks(tokens, extent, () => '\n\n')
}

function blocks(tokens: Token[], { width, open }: Extent, gap: (next: Token) => string): string {
	const shown = tokens.filter(({ type }) => type !== 'space' && type !== 'def' && type !== 'checkbox')
	let text = ''
	for (const [n, token] of shown.entries()) {
		const next = block(token, { width, open: open && n === shown.length - 1 })
		if (next !== '') text += (text === '' ? '' : gap(token)) + next
	}
	return text
}

function block(token: Token, extent: Extent): string {
	const { width, open } = extent
	switch (token.type) {
		case 'paragraph':
		case 'text':
			// The next line decides whether it is the head of a table.
			if (open && token.raw.split('\n', 1)[0]?.includes('|') && !/\n.*\n/.test(token.raw)) return ''
			return wrap(words(inlineOf(token), [], open), width, open)
		case 'heading':
			return open && !token.raw.includes('\n') ? '' : wrap(words(inlineOf(token), ['bold'], false), width)
		case 'code':
			return code(token as Tokens.Code, open)
		case 'blockquote': {
			const inner = blocks(token.tokens ?? [], { width: Math.max(10, width - 2), open }, () => '\n\n')
			return inner === '' ? '' : inner.replaceAll(/^/gm, styled('│ ', ['dim']))
		}
		case 'list':
			return list(token as Tokens.List, extent)
		case 'table':
			return open ? '' : table(token as Tokens.Table, width)
		case 'hr':
			return styled('─'.repeat(Math.min(width, 40)), ['dim'])
		default:
			return open ? '' : plain(token.raw.trimEnd(), { lines: true })
	}
}

/** Neither wrapped nor indented, so that it can be copied. */
function code({ text }: Tokens.Code, open: boolean): string {
	const lines = text.split('\n')
	if (open) lines.pop()
	return lines.map((line) => styled(plain(line), ['code'])).join('\n')
}

function list({ ordered, start, items }: Tokens.List, { width, open }: Extent): string {
	const shown = items.map((item, n) => {
		const box = item.task ? (item.checked ? '☑ ' : '☐ ') : ''
		const marker = ordered ? `${Number(start) + n}. ${box}` : box || '• '
		const indent = widthOf(marker)
		const inner = { width: Math.max(10, width - indent), open: open && n === items.length - 1 }
		const body = blocks(item.tokens, inner, ({ type }) => (type === 'paragraph' ? '\n\n' : '\n'))
		return body === '' && inner.open ? '' : marker + body.replaceAll(/\n(?=[^\n])/g, `\n${' '.repeat(indent)}`)
	})
	return shown.filter((item) => item !== '').join('\n')
}

/** In columns where they fit, else each row as lines of `heading: value`. */
function table({ header, rows }: Tokens.Table, width: number): string {
	const line = (cell: Tokens.TableCell, styles: StyleName[] = []): string =>
		wrap(words(cell.tokens, styles, false), Infinity)
	const cells = [header.map((cell) => line(cell, ['bold'])), ...rows.map((row) => row.map((cell) => line(cell)))]
	const widths = header.map((_, n) => Math.max(...cells.map((row) => widthOf(row[n] ?? ''))))
	if (widths.reduce((sum, one) => sum + one + 2, -2) <= width)
		return cells
			.map((row) => row.map((cell, n) => cell + ' '.repeat((widths[n] ?? 0) - widthOf(cell) + 2)).join(''))
			.map((row) => row.trimEnd())
			.join('\n')
	return rows
		.map((row) =>
			row
				.map((cell, n) => {
					const name = header[n]?.tokens ?? []
					const colon: Token = { type: 'text', raw: ': ', text: ': ' }
					return wrap([...words(name, ['bold'], false), ...words([colon, ...cell.tokens], [], false)], width)
				})
				.join('\n'),
		)
		.join('\n\n')
}

/** A piece of a word, or what separates two; a line may end at a `joint`, which is not shown. */
type LinePiece = { text: string; width: number } | 'space' | 'break' | 'joint'

/** What may begin emphasis, code or a link, and has not ended yet. */
const opener = /(?<![\p{L}\p{N}_])_(?=\S|$)|\*(?=\S|$)|`|~(?=\S|$)|\[(?![^\]]*\][^([:])|<(?=[a-z/!]|$)|\\$/iu
/** The most characters that are held back for emphasis, code or a link that is not closed. */
const HELD_LIMIT = 400

function words(tokens: Token[], styles: StyleName[], open: boolean): LinePiece[] {
	const pieces: LinePiece[] = []
	for (const [n, token] of tokens.entries()) {
		if (open && token.type === 'text') {
			const rest = tokens.slice(n).reduce((sum, one) => sum + one.raw.length, 0)
			const at = token.text.search(opener)
			if (at >= 0 && rest - at < HELD_LIMIT) return [...pieces, ...leaf(token.text.slice(0, at), styles)]
		}
		pieces.push(...inline(token, styles))
	}
	return pieces
}

function inline(token: Token, styles: StyleName[]): LinePiece[] {
	const inner = (style: StyleName): LinePiece[] => words(inlineOf(token), [...styles, style], false)
	switch (token.type) {
		case 'strong':
			return inner('bold')
		case 'em':
			return inner('italic')
		case 'del':
			return inner('struck')
		case 'codespan':
			return leaf(token.text, [...styles, 'code'])
		case 'br':
			return ['break']
		case 'link':
		case 'image': {
			const { href, text } = token as Tokens.Link
			const label = token.type === 'link' ? words(inlineOf(token), styles, false) : leaf(text, styles)
			return text === href || `mailto:${text}` === href || text === ''
				? leaf(href, styles)
				: [...label, 'space', ...leaf(`(${href})`, [...styles, 'dim'])]
		}
		default:
			return token.type === 'text' && 'tokens' in token
				? words(inlineOf(token), styles, false)
				: leaf('text' in token ? String(token.text) : token.raw, styles)
	}
}

function inlineOf(token: Token): Token[] {
	return ('tokens' in token && token.tokens) || [token]
}

function leaf(text: string, styles: StyleName[]): LinePiece[] {
	return text
		.replaceAll(entity, (found) => entities[found] ?? found)
		.split(/(\s+)/)
		.filter((part) => part !== '')
		.flatMap((part): LinePiece[] => {
			if (/^\s/.test(part)) return [part.includes('\n') ? 'break' : 'space']
			const parts = plain(part).split(joints)
			const pieces = parts.map((one) => ({ text: styled(one, styles), width: widthOf(one) }))
			return pieces.flatMap((piece, n): LinePiece[] => (n === 0 ? [piece] : ['joint', piece]))
		})
}

/** Where a script has no spaces, a line may end after every character, except before punctuation. */
const joints =
	/(?<=[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3001-\u303e\uff01-\uff60])(?![\u3001-\u303e\uff01-\uff60])/u

const entity = /&(?:amp|lt|gt|quot|#39|nbsp);/g
const entities: Record<string, string> = {
	'&amp;': '&',
	'&lt;': '<',
	'&gt;': '>',
	'&quot;': '"',
	'&#39;': "'",
	'&nbsp;': ' ',
}

/** Breaks lines at `width` columns; a longer word exceeds it. The last word of an open text is omitted. */
function wrap(pieces: LinePiece[], width: number, open = false): string {
	let text = ''
	let column = 0
	let word = ''
	let wordWidth = 0
	let gap: '' | ' ' | '\n' = ''
	const flush = (): void => {
		if (word === '') return
		const breaks = gap === '\n' || (column > 0 && column + gap.length + wordWidth > width)
		text += (text === '' ? '' : breaks ? '\n' : gap) + word
		column = (breaks || text === word ? 0 : column + gap.length) + wordWidth
		word = ''
		wordWidth = 0
		gap = ''
	}
	for (const piece of pieces) {
		if (typeof piece === 'string') {
			flush()
			if (piece !== 'joint') gap = piece === 'break' ? '\n' : gap || ' '
		} else {
			word += piece.text
			wordWidth += piece.width
		}
	}
	if (!open) flush()
	return text
}
