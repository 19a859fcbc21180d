/**
 * Converts Markdown to the `html` of adapter.ts, or to plain text. Never fails: text that cannot be parsed is shown unchanged.
 */
import type { MarkedToken, Token, Tokens } from 'marked'
import { columnsOf } from '../../../core/util/columns.ts'
import { lex } from '../../shared/markdown.ts'

export type Target = 'html' | 'plain'

/** For texts of up to some ten thousand characters. A block that cannot be converted stays as written. */
export async function convert(text: string, target: Target): Promise<string> {
	const clean = text.replaceAll('\0', '').toWellFormed()
	try {
		return blocks(await lex(clean), styles[target], new Set()).trimEnd()
	} catch {
		return styles[target].text(clean) // nested deeper than the stack
	}
}

/** Length of a converted text without its tags, in UTF-16 code units. */
export function lengthOf(text: string, target: Target): number {
	if (target === 'plain') return text.length
	return text.replaceAll(/<[^<>]*>/g, '').replaceAll(/&(?:amp|lt|gt);/g, ' ').length
}

interface Style {
	text(text: string): string
	/** Wraps converted content. */
	mark(tag: 'b' | 'i' | 's' | 'blockquote', content: string): string
	code(text: string): string
	block(text: string, language: string): string
	link(href: string, content: string, label: string): string
}

const styles: Record<Target, Style> = {
	html: {
		text: escape,
		mark: (tag, content) => `<${tag}>${content}</${tag}>`,
		code: (text) => `<code>${escape(text)}</code>`,
		block: (text, language) =>
			language === ''
				? `<pre>${escape(text)}</pre>`
				: `<pre><code class="language-${language}">${escape(text)}</code></pre>`,
		link: (href, content) => `<a href="${escape(href).replaceAll('"', '&quot;')}">${content}</a>`,
	},
	plain: {
		text: (text) => text,
		mark: (_tag, content) => content,
		code: (text) => text,
		block: (text) => text,
		link: (href, content, label) => (label === href || `mailto:${label}` === href ? content : `${content} (${href})`),
	},
}

/** The open tags. No tag is nested in itself. */
type Open = ReadonlySet<string>

/** `gap`: the text between two blocks. */
function blocks(tokens: readonly Token[], style: Style, open: Open, gap = '\n\n'): string {
	return (tokens as MarkedToken[])
		.map((token) => blockOf(token, style, open))
		.filter((block) => block !== '')
		.join(gap)
}

function blockOf(token: MarkedToken, style: Style, open: Open): string {
	switch (token.type) {
		case 'space':
			return ''
		case 'code':
			return style.block(token.text, languageOf(token.lang))
		case 'heading':
			return marked('b', token.tokens, style, open)
		case 'paragraph':
			return inline(token.tokens, style, open)
		case 'text':
			return (token.tokens ? inline(token.tokens, style, open) : style.text(decode(token.text))).trimEnd()
		case 'blockquote': {
			const content = blocks(token.tokens, style, open.union(new Set(['blockquote'])))
			return open.has('blockquote') ? content : style.mark('blockquote', content)
		}
		case 'list':
			return listOf(token, style, open)
		case 'table':
			return style.block(tableOf(token), '')
		case 'hr':
			return '———'
		default:
			// HTML and link definitions are shown as written.
			return style.text(token.raw.trimEnd())
	}
}

function listOf(list: Tokens.List, style: Style, open: Open): string {
	const start = Number(list.start)
	const items = list.items.map((item, n) => {
		const mark = list.ordered ? `${start + n}. ` : '• '
		return mark + itemOf(item, style, open).replaceAll('\n', `\n${' '.repeat(mark.length)}`)
	})
	return items.join(list.loose ? '\n\n' : '\n')
}

/** marked puts the checkbox of a task among its blocks, or into its paragraph. */
function itemOf(item: Tokens.ListItem, style: Style, open: Open): string {
	const rest = item.tokens.filter(({ type }) => type !== 'checkbox')
	const box = rest.length < item.tokens.length ? boxOf(item.checked === true) : ''
	return box + blocks(rest, style, open, item.loose ? '\n\n' : '\n')
}

function boxOf(checked: boolean): string {
	return checked ? '☑ ' : '☐ '
}

function inline(tokens: readonly Token[], style: Style, open: Open): string {
	let text = ''
	for (const token of tokens as MarkedToken[]) text += inlineOf(token, style, open)
	return text
}

function inlineOf(token: MarkedToken, style: Style, open: Open): string {
	switch (token.type) {
		case 'strong':
			return marked('b', token.tokens, style, open)
		case 'em':
			return marked('i', token.tokens, style, open)
		case 'del':
			return marked('s', token.tokens, style, open)
		case 'codespan':
			return style.code(token.text)
		case 'br':
			return '\n'
		case 'link':
		case 'image':
			return linkOf(token.href, token.tokens, style, open)
		case 'checkbox':
			return boxOf(token.checked)
		case 'escape':
			return style.text(token.text)
		case 'text':
			return token.tokens ? inline(token.tokens, style, open) : style.text(decode(token.text))
		default:
			return style.text(token.raw)
	}
}

function marked(tag: 'b' | 'i' | 's', tokens: readonly Token[], style: Style, open: Open): string {
	if (open.has(tag)) return inline(tokens, style, open)
	const content = inline(tokens, style, open.union(new Set([tag])))
	return content === '' ? '' : style.mark(tag, content)
}

function linkOf(href: string, tokens: readonly Token[], style: Style, open: Open): string {
	const content = inline(tokens, style, open.union(new Set(['a'])))
	if (open.has('a')) return content
	const url = decode(href)
	if (!/^(?:https?|tg|mailto):[^\s"<>]+$/i.test(url)) return content
	return style.link(url, content === '' ? style.text(url) : content, inline(tokens, styles.plain, open))
}

/** Columns aligned with spaces, for a monospaced font. */
function tableOf({ header, rows, align }: Tokens.Table): string {
	const cells = [header, ...rows].map((row) => row.map(({ tokens }) => inline(tokens, styles.plain, new Set())))
	const widths = header.map((_, n) => Math.max(3, ...cells.map((row) => columnsOf(row[n] ?? ''))))
	const lines = cells.map((row) =>
		widths
			.map((width, n) => pad(row[n] ?? '', Math.min(width, COLUMN_LIMIT), align[n] ?? null))
			.join(' | ')
			.trimEnd(),
	)
	const rule = widths.map((width) => '-'.repeat(Math.min(width, COLUMN_LIMIT))).join('-|-')
	return [lines[0] ?? '', rule, ...lines.slice(1)].join('\n')
}

/** One long cell must not widen all others. */
const COLUMN_LIMIT = 40

function pad(text: string, width: number, align: Tokens.Table['align'][number]): string {
	const missing = Math.max(0, width - columnsOf(text))
	const left = align === 'right' ? missing : align === 'center' ? Math.floor(missing / 2) : 0
	return ' '.repeat(left) + text + ' '.repeat(missing - left)
}

function languageOf(lang: string | undefined): string {
	return /^[\w+#.-]{1,32}/.exec(lang ?? '')?.[0] ?? ''
}

export function escape(text: string): string {
	return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Decodes references such as `&amp;`, which the lexer keeps. */
function decode(text: string): string {
	return text.replaceAll(
		/&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));/g,
		(all, name, dec, hex) => {
			if (typeof name === 'string') return named[name] ?? all
			const code = typeof dec === 'string' ? Number(dec) : Number.parseInt(String(hex), 16)
			const isCharacter = code >= 32 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
			return isCharacter ? String.fromCodePoint(code) : all
		},
	)
}
