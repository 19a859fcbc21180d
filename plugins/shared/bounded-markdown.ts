/**
 * Reads Markdown within a bound of work, whatever the text: the lexer takes time that grows with the square of some texts, and
 * deep quotes overflow its stack. A block that would take too much comes as a token `written`, to be shown as it stands.
 */
import { Lexer, Tokenizer } from 'marked'
import type { Token, Tokens } from 'marked'

/** Characters times signs of one block, such as a paragraph of 4,000 characters with 60 words in bold. */
const BLOCK_LIMIT = 1_000_000
/** Of all blocks of a text together. */
const TEXT_LIMIT = 2_000_000
/** Rules of tables in one paragraph times its characters: after each the lexer looks for rows, at each line before it. */
const TABLES_LIMIT = 500_000
/** Characters that are looked through for the ends of headings, quotes and tables. */
const LOOK_LIMIT = 200_000
/** Quotes and lists within each other. */
const DEPTH_LIMIT = 12
/** Characters of what lies in quotes and lists, at each depth: quotes that continue in lines without their sign are read repeatedly. */
const NESTED_LIMIT = 400_000

/** What begins, or ends, something within a line: at each the lexer may look through all that follows. */
const SIGNS = /[*_~[\]`<&\\@:!]/g

/** The same text makes the same tokens. */
export function lexBounded(given: string): Token[] {
	const text = given.replaceAll(/\r\n?/g, '\n')
	return new BoundedLexer({ gfm: !hasManyTables(text), tokenizer: new BoundedTokenizer() }).lex(text)
}

class BoundedTokenizer extends Tokenizer {
	#looked = 0

	/** Are there characters left that may be looked through, up to the next blank line? */
	#mayLook(src: string): boolean {
		if (this.#looked <= LOOK_LIMIT) this.#looked += paragraphOf(src).length
		return this.#looked <= LOOK_LIMIT
	}

	/** Tried at each line that continues a list item without a list marker. */
	override lheading(src: string): Tokens.Heading | undefined {
		return this.#mayLook(src) ? super.lheading(src) : undefined
	}

	/** Lexed again from within, if lines without the sign continue it. */
	override blockquote(src: string): Tokens.Blockquote | undefined {
		if (!/^ {0,3}>/.test(src)) return undefined
		if (this.#mayLook(src)) return super.blockquote(src)
		return written(paragraphOf(src)) as unknown as Tokens.Blockquote
	}

	/** Each row has as many cells as the head, though it is a single sign. */
	override table(src: string): Tokens.Table | undefined {
		const columns = /^[^\n]*\n[ \t]*([-:|][-:| \t]*)(?:\n|$)/.exec(src)?.[1]?.split('|').length ?? 0
		if (columns === 0 || !this.#mayLook(src)) return undefined
		const raw = paragraphOf(src)
		if (columns * raw.split('\n').length <= raw.length) return super.table(src)
		return written(raw) as unknown as Tokens.Table
	}
}

class BoundedLexer extends Lexer {
	#depth = 0
	#nested = 0
	#work = 0

	override blockTokens(src: string, ...rest: [Token[]?, boolean?]): never {
		if (this.#depth > 0) this.#nested += src.length
		if (this.#depth >= DEPTH_LIMIT || this.#nested > NESTED_LIMIT) {
			const tokens = rest[0] ?? []
			tokens.push(written(src))
			return tokens as never
		}
		this.#depth++
		try {
			return super.blockTokens(src, ...(rest as [])) as never
		} finally {
			this.#depth--
		}
	}

	override inlineTokens(src: string, tokens: Token[] = []): Token[] {
		const work = src.length * (src.match(SIGNS)?.length ?? 0)
		if (work > BLOCK_LIMIT || this.#work + work > TEXT_LIMIT) {
			tokens.push(written(src))
			return tokens
		}
		this.#work += work
		return super.inlineTokens(src, tokens)
	}
}

/** More than any real text has. Legitimate ones are not adjacent. */
function hasManyTables(text: string): boolean {
	const paragraphs = text.split(/\n[>\s]*\n/)
	return paragraphs.some((one) => one.length * (one.match(/^[->:| \t]+$/gm)?.length ?? 0) > TABLES_LIMIT)
}

function paragraphOf(src: string): string {
	return src.slice(0, /\n[ \t]*\n/.exec(src)?.index)
}

function written(raw: string): Tokens.Generic {
	return { type: 'written', raw, text: raw }
}
