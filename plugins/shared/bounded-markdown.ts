/**
 * Lexes Markdown with bounded work: for some texts the lexer of `marked` takes quadratic time, and deeply nested quotes overflow
 * its stack. A block that would exceed a limit becomes a token of type `written`, whose source is shown unchanged.
 */
import { Lexer, Tokenizer } from 'marked'
import type { Token, Tokens } from 'marked'

/** Characters times delimiters of one block. A paragraph of 4,000 characters with 60 bold words has about as many. */
const BLOCK_LIMIT = 1_000_000
/** The same for all blocks of a text together. */
const TEXT_LIMIT = 2_000_000
/** Delimiter rows of tables in one paragraph times its characters: for each line, the lexer searches for rows after each of them. */
const TABLES_LIMIT = 500_000
/** Characters that are scanned for the ends of headings, quotes and tables. */
const SCAN_LIMIT = 200_000
/** Nesting depth of quotes and lists. */
const DEPTH_LIMIT = 12
/** Characters in quotes and lists, counted at each depth: quotes with lazy continuation lines are lexed repeatedly. */
const NESTED_LIMIT = 400_000

/** Inline delimiters: at each of them the lexer may scan the rest of the block. */
const DELIMITERS = /[*_~[\]`<&\\@:!]/g

/** Deterministic: the same text yields the same tokens. */
export function lexBounded(given: string): Token[] {
	const text = given.replaceAll(/\r\n?/g, '\n')
	return new BoundedLexer({ gfm: !hasManyTables(text), tokenizer: new BoundedTokenizer() }).lex(text)
}

class BoundedTokenizer extends Tokenizer {
	#scanned = 0

	/** Counts the characters up to the next blank line. False if the limit is exceeded. */
	#mayScan(src: string): boolean {
		if (this.#scanned <= SCAN_LIMIT) this.#scanned += paragraphOf(src).length
		return this.#scanned <= SCAN_LIMIT
	}

	/** Called for each line that continues a list item without a list marker. */
	override lheading(src: string): Tokens.Heading | undefined {
		return this.#mayScan(src) ? super.lheading(src) : undefined
	}

	/** A quote with lazy continuation lines is lexed again for each of them. */
	override blockquote(src: string): Tokens.Blockquote | undefined {
		if (!/^ {0,3}>/.test(src)) return undefined
		if (this.#mayScan(src)) return super.blockquote(src)
		return written(paragraphOf(src)) as unknown as Tokens.Blockquote
	}

	/** Each row gets as many cells as the header, even if it is a single character. */
	override table(src: string): Tokens.Table | undefined {
		const columns = /^[^\n]*\n[ \t]*([-:|][-:| \t]*)(?:\n|$)/.exec(src)?.[1]?.split('|').length ?? 0
		if (columns === 0 || !this.#mayScan(src)) return undefined
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
		const work = src.length * (src.match(DELIMITERS)?.length ?? 0)
		if (work > BLOCK_LIMIT || this.#work + work > TEXT_LIMIT) {
			tokens.push(written(src))
			return tokens
		}
		this.#work += work
		return super.inlineTokens(src, tokens)
	}
}

/** Whether the text has more tables per paragraph than real texts, in which blank lines separate them. */
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
