import { isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, parseDocument, visit } from 'yaml'
import type { Node, Pair } from 'yaml'
import { messageOf } from '../core/errors.ts'
import type { Position, Problem } from './problems.ts'

/** The settings of a file as plain data, and the position of each. Paths are dotted. */
export interface Tree {
	value: unknown
	problems: Problem[]
	/** Paths whose value could not be read and is missing; the problem is already reported. */
	broken: Set<string>
	/** Paths whose text contained references: it may represent a number or a boolean. */
	replaced: Set<string>
	/** The position of the name or the value of a path; for a missing one, that of its nearest ancestor. */
	locate(path: string, part: 'key' | 'value'): Position
	/** Whether the path itself is in the file. */
	has(path: string): boolean
	/** The path in the file, which may be another place for the same setting. */
	written(path: string): string
}

const maxDepth = 64
/** Limits the time of the parser, which takes about 10 µs for each token: 1 MiB of brackets would take seconds. */
const maxTokens = 100_000

/**
 * Parses YAML 1.2 (core schema) into a tree, with `replace` applied to every text value. Syntax errors leave `value` undefined.
 * Anchors, aliases, merge keys, foreign tags and repeated keys are problems: a setting must be written where it applies.
 */
export function parseTree(text: string, replace: (text: string) => string): Tree {
	const lines = new LineCounter()
	const spots = new Map<string, { key: number; value: number }>([['', { key: 0, value: 0 }]])
	const problems: Problem[] = []
	const broken = new Set<string>()
	const replaced = new Set<string>()
	const at = (offset: number): Position => {
		const { line, col } = lines.linePos(offset)
		return { line: Math.max(1, line), column: Math.max(1, col) }
	}
	const tree: Tree = {
		value: undefined,
		problems,
		broken,
		replaced,
		has: (path) => spots.has(path),
		written: (path) => path,
		locate(path, part) {
			for (let known = path, asked = part; ; asked = 'key') {
				const spot = spots.get(known)
				if (spot) return at(spot[asked])
				known = known.slice(0, Math.max(0, known.lastIndexOf('.')))
			}
		},
	}

	const excess = offsetOfExcess(text)
	if (excess !== undefined) {
		const before = text.slice(0, excess).split('\n')
		const where = { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
		const message = `has more than ${maxTokens.toLocaleString('en')} words and symbols up to here; remove what is not needed`
		problems.push({ path: '', message, where })
		return tree
	}

	// Repeated keys are found below: the parser's own check takes a minute for a file with 60,000 keys.
	const document = parseDocument(text, {
		lineCounter: lines,
		prettyErrors: false,
		schema: 'core',
		resolveKnownTags: false,
		stringKeys: true,
		uniqueKeys: false,
	})
	const faults = [...document.errors, ...document.warnings]
	const reported = new Set<number>()
	for (const { code, message, pos } of faults) {
		const where = at(pos[0])
		// One mistake causes several errors on its line; only the first is reported.
		if (!reported.has(where.line)) problems.push({ path: '', message: inPlainWords(code, message), where })
		reported.add(where.line)
	}
	if (faults.length > 0) return tree

	visit(document, {
		Node(_, node) {
			const offset = node.range?.[0] ?? 0
			if (isAlias(node))
				problems.push({ path: '', message: 'aliases are not supported; write the value itself', where: at(offset) })
			else if (node.anchor)
				problems.push({
					path: '',
					message: `anchors are not supported; remove "&${node.anchor}"`,
					// An anchor stands before its node.
					where: at(text.lastIndexOf(`&${node.anchor}`, offset)),
				})
		},
	})
	if (problems.length > 0) return tree

	tree.value = read(document.contents, [], 0)
	return tree

	function read(node: Node | null, path: readonly string[], depth: number): unknown {
		const name = path.join('.')
		if (depth > maxDepth) return fail(name, offsetOf(node), `is nested more than ${maxDepth} levels deep`)
		if (isMap(node)) return readMap(node.items as Pair<Node, Node | null>[], path, depth)
		if (isSeq(node)) {
			return node.items.map((item, index) => {
				const offset = offsetOf(item as Node)
				spots.set([...path, String(index)].join('.'), { key: offset, value: offset })
				return read(item as Node, [...path, String(index)], depth + 1)
			})
		}
		const value = isScalar(node) ? node.value : null
		if (typeof value !== 'string') return value
		try {
			const result = replace(value)
			if (result !== value) replaced.add(name)
			return result
		} catch (error) {
			return fail(name, offsetOf(node), messageOf(error))
		}
	}

	function readMap(items: Pair<Node, Node | null>[], path: readonly string[], depth: number): Record<string, unknown> {
		const result: Record<string, unknown> = {}
		for (const { key, value } of items) {
			const name = isScalar(key) ? String(key.value) : ''
			const inner = [...path, name]
			const offset = offsetOf(key)
			const dotted = inner.join('.')
			if (name === '<<') fail(dotted, offset, 'merge keys are not supported; write the settings themselves')
			else if (name === '__proto__') fail(dotted, offset, 'is not a name that can be used')
			else if (Object.hasOwn(result, name)) report(dotted, offset, 'occurs here a second time; keep one of the two')
			else {
				spots.set(dotted, { key: offset, value: value?.range ? value.range[0] : offset })
				result[name] = read(value, inner, depth + 1)
			}
		}
		return result
	}

	function fail(path: string, offset: number, message: string): undefined {
		broken.add(path)
		report(path, offset, message)
	}

	function report(path: string, offset: number, message: string): void {
		problems.push({ path, message, where: at(offset) })
	}
}

/** The position after `maxTokens` tokens. Undefined if the text has no more. */
function offsetOfExcess(text: string): number | undefined {
	// Most files are too short to have that many.
	if (text.length <= maxTokens) return undefined
	let offset = 0
	let count = 0
	for (const token of new Lexer().lex(text)) {
		if (CONTROL_TOKENS.has(token)) continue
		if (++count > maxTokens) return offset
		offset += token.length
	}
	return undefined
}

/** Tokens of the lexer that are not in the text: the beginning of a document and of a plain value, and the end of a broken list. */
const CONTROL_TOKENS = new Set(['\u0002', '\u0018', '\u001f'])

function offsetOf(node: Node | null): number {
	return node?.range?.[0] ?? 0
}

/** Replaces the parser's messages, which use internal terms. Some end with a piece of the file, which may be a key. */
function inPlainWords(code: string, message: string): string {
	const known: Partial<Record<string, string>> = {
		BAD_INDENT: 'the indentation, or a missing bracket, does not fit the lines around it',
		BAD_SCALAR_START: 'a plain value cannot start with this character; put the value in quotes',
		BLOCK_AS_IMPLICIT_KEY:
			'two settings on one line, or a value with ": " in it; start a new line, or put the value in quotes',
		MISSING_CHAR: 'a quote, a bracket or a space is missing',
		MULTILINE_IMPLICIT_KEY: 'a ":" is missing after a name',
		MULTIPLE_DOCS: 'the file must contain one document; remove what follows from this "---" on',
		NON_STRING_KEY: 'a name must be plain text',
		TAB_AS_INDENT: 'tabs cannot indent YAML; use spaces',
		UNEXPECTED_TOKEN: 'does not fit here; a value with "{", "[", ", " or quotes in it needs quotes around it',
		TAG_RESOLVE_FAILED: 'tags are not supported; remove the word that starts with "!"',
	}
	if (message.includes('call stack')) return `is nested more than ${maxDepth} levels deep`
	return known[code] ?? message.replace(/: ".*$/s, '')
}
