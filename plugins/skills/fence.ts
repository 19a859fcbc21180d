/**
 * Finds the program in the Markdown of a skill. It must be what a reader of the rendered document sees as the program. So a
 * document is refused if another block could be mistaken for the program, or if something could hide it.
 */
import type { Token, Tokens } from 'marked'
import type { Program } from '../../sandbox/host-protocol.ts'
import { lex } from '../shared/markdown.ts'
import { invalid } from './front-matter.ts'

export interface FencedProgram extends Program {
	/** The document's line on which the code begins, from 1. */
	line: number
}

const languages: Record<string, Program['language']> = {
	js: 'javascript',
	javascript: 'javascript',
	mjs: 'javascript',
	ts: 'typescript',
	typescript: 'typescript',
	mts: 'typescript',
}
const EXCERPT_LIMIT = 60

/**
 * The program is the first fenced block of JavaScript or TypeScript in plain flow, not in a list, a quote or HTML. Further blocks
 * may follow as examples if they export nothing. `firstLine`: the document's line on which `markdown` begins. Throws
 * `skill_invalid`, naming the line and what to change.
 */
export async function readProgram(markdown: string, firstLine: number): Promise<FencedProgram> {
	const { plain, nested } = await blocksOf(markdown, firstLine, (token, line) => refuseHiding(token, line))
	const [program, ...others] = plain
	if (!program) {
		const [inside] = nested
		if (inside) throw invalid(inside.line - 1, 'the program is in a list or a quote; move it out, to the left margin')
		throw invalid(firstLine, 'runtime: javascript needs a program; add a fenced block that begins with ```js or ```ts')
	}
	refuseEarlyEnd(program)
	// A search for the word is sufficient: the keyword has no other spelling, and a block without it is not a program.
	const second = [...others, ...nested].find(({ code }) => /\bexport\b/.test(code))
	if (second) {
		const first = `the program is the block on line ${program.line - 1}`
		throw invalid(
			second.line - 1,
			/\bexport\b/.test(program.code)
				? `${first}, but this block exports something too; keep one of them, or mark an example as \`\`\`text`
				: `${first}, which exports nothing, unlike this one; put the program before its examples`,
		)
	}
	const { code, language, line } = program
	return { code, language, line }
}

/** Whether there is a fenced block in plain flow that would be a program if the document had a runtime. */
export async function hasBlock(markdown: string): Promise<boolean> {
	return (await blocksOf(markdown, 1)).plain.length > 0
}

interface CodeBlock extends FencedProgram {
	/** The block including its fences. */
	raw: string
}

/** Fenced blocks in a program's language. `others` is called with everything else, and its earliest possible line. */
async function blocksOf(
	markdown: string,
	firstLine: number,
	others: (token: Tokens.Generic, line: number) => void = () => {},
): Promise<{ plain: CodeBlock[]; nested: CodeBlock[] }> {
	const plain: CodeBlock[] = []
	const nested: CodeBlock[] = []
	let line = firstLine
	for (const top of await lex(markdown)) {
		for (const token of within(top)) {
			const block = token.type === 'code' ? blockOf(token as Tokens.Code, line) : undefined
			if (block) (token === top ? plain : nested).push(block)
			else if (token.type !== 'code' && token.type !== 'codespan') others(token, line)
		}
		line += top.raw.split('\n').length - 1
	}
	return { plain, nested }
}

/** The token and its descendants. */
function* within(token: Token): Generator<Tokens.Generic> {
	yield token
	const { tokens = [], items = [], header = [], rows = [] } = token as Inner
	const cells = [...header, ...rows.flat()].flatMap((cell) => cell.tokens)
	for (const inner of [...tokens, ...items, ...cells]) yield* within(inner)
}

interface Inner {
	tokens?: Token[]
	/** In a list. */
	items?: Token[]
	/** In a table. */
	header?: { tokens: Token[] }[]
	rows?: { tokens: Token[] }[][]
}

function blockOf({ raw, lang = '', text, codeBlockStyle }: Tokens.Code, line: number): CodeBlock | undefined {
	const word = /^[^\s{]*/.exec(lang)?.[0].toLowerCase() ?? ''
	if (codeBlockStyle === 'indented' || !Object.hasOwn(languages, word)) return undefined
	return { code: `${text}\n`, language: languages[word] ?? 'javascript', line: line + 1, raw }
}

/** Throws for anything that can hide code from a reader, or that contains code which other Markdown renderers show. */
function refuseHiding({ type, raw, tokens = [] }: Tokens.Generic, line: number): void {
	if (type === 'written')
		throw invalid(line, 'this part takes too much work to parse as Markdown; use less markup and fewer levels')
	const isComment = type === 'html' && /^(?:\s*<!--[^<>]*-->)+\s*$/.test(raw)
	if ((isComment || type === 'def') && /`{3}|~{3}/.test(raw))
		throw invalid(line, 'a block of code must not be in a comment or in the title of a link; move it out')
	if (isComment || type === 'def') return
	const tag =
		tokens.length === 0 && (type === 'html' || type === 'text') ? /<[a-z/!?][^>\n]*>?/i.exec(raw)?.[0] : undefined
	if (tag === undefined && type !== 'html') return
	throw invalid(
		line,
		`HTML can hide a program from its readers, so a document with a program must not contain HTML; remove ${(tag ?? raw).slice(0, EXCERPT_LIMIT)}, or write it between backticks`,
	)
}

/** Throws if other Markdown renderers end the block earlier than this parser, and show the rest of the code as text. */
function refuseEarlyEnd({ raw, line }: CodeBlock): void {
	// Tabs are kept: other parsers accept a tab after the closing fence, but this parser treats such a line as code.
	const [first = '', ...lines] = raw.replace(/(?<!\n)\n+$/, '').split('\n')
	const fence = /`{3,}|~{3,}/.exec(first)?.[0] ?? ''
	const end = new RegExp(`^ {0,3}${fence}[\`~\\s]*$`)
	const at = lines.findIndex((text) => end.test(text))
	if (at < 0 || (at === lines.length - 1 && /^ {0,3}(`+|~+) *$/.test(lines[at] ?? ''))) return
	throw invalid(
		line + at,
		'this line looks like the end of the program; end the program with the same fence that it begins with',
	)
}
