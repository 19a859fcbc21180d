/** Parses the YAML front matter of a skill document to plain data, within limits, since its author is not trusted. */
import { isMap, isScalar, isSeq, Lexer, LineCounter, parseDocument } from 'yaml'
import { Fault } from '../../core/errors.ts'
import { isObject } from '../../core/util/is-object.ts'

export interface FrontMatter {
	/** Contains only JSON types. Keys are strings, never `__proto__`. */
	data: Record<string, unknown>
	/** The document's line of a value, or of the nearest enclosing value, from 1. */
	lineOf(path: readonly (string | number)[]): number
	/** The text after the front matter. */
	body: string
	/** The document's line on which `body` begins. */
	bodyLine: number
}

const LIMIT_BYTES = 16 * 1024
/** Limits the parsing time: 16 KiB of brackets would take a tenth of a second. */
const TOKEN_LIMIT = 6_000
const DEPTH_LIMIT = 16

/** Throws `skill_invalid`, naming the line, unless the front matter is one plain map between two lines of `---`. */
export function readFrontMatter(document: string): FrontMatter {
	const { head, body, bodyLine } = split(document)
	checkTokens(head)
	const lines = new LineCounter()
	const parsed = parseDocument(head, {
		version: '1.2',
		schema: 'core',
		merge: false,
		uniqueKeys: false, // quadratic; duplicates are found below
		prettyErrors: false,
		logLevel: 'silent',
		lineCounter: lines,
	})
	const lineAt = (offset: number): number => lines.linePos(offset).line + 1
	const problem = parsed.errors[0] ?? parsed.warnings[0]
	if (problem) throw invalid(lineAt(problem.pos[0]), `${problem.message}; quote a value that contains ": " or "#"`)

	const found = new Map<string, number>()
	const data = plain(parsed.contents, [])
	if (!isObject(data)) throw invalid(2, 'the front matter must be a map with name and description')
	return {
		data,
		lineOf(path) {
			for (let length = path.length; length > 0; length--) {
				const line = found.get(pathKey(path.slice(0, length)))
				if (line !== undefined) return line
			}
			return 1
		},
		body,
		bodyLine,
	}

	function plain(node: unknown, path: (string | number)[]): unknown {
		if (path.length > DEPTH_LIMIT) throw invalid(lineOfNode(node), `nested more than ${DEPTH_LIMIT} levels deep`)
		if (node === null) return null
		if (isSeq(node)) return node.items.map((item, at) => mark(item, [...path, at]))
		if (isMap(node)) {
			const entries = new Map<string, unknown>()
			for (const { key, value } of node.items) {
				const name = isScalar(key) ? key.value : undefined
				const line = lineOfNode(key ?? value)
				if (typeof name !== 'string') throw invalid(line, 'a key must be a word; quote it if it looks like a number')
				if (name === '<<' || name === '__proto__')
					throw invalid(line, `the key ${name} is not supported; write its keys out`)
				if (entries.has(name)) throw invalid(line, `the key ${name} occurs twice; keep one`)
				found.set(pathKey([...path, name]), line)
				entries.set(name, plain(value, [...path, name]))
			}
			return Object.fromEntries(entries)
		}
		const value: unknown = isScalar(node) ? node.value : undefined
		if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
		if (typeof value === 'number' && Number.isFinite(value)) return value
		throw invalid(
			lineOfNode(node),
			'a value must be text, a finite number, true, false or null; quote it to make it text',
		)
	}

	function mark(node: unknown, path: (string | number)[]): unknown {
		found.set(pathKey(path), lineOfNode(node))
		return plain(node, path)
	}

	function lineOfNode(node: unknown): number {
		const range = (node as { range?: [number, number, number] | null } | null)?.range
		return range ? lineAt(range[0]) : 2
	}
}

export function invalid(line: number, message: string): Fault {
	return new Fault('skill_invalid', `line ${line}: ${message}`)
}

/** Our own splitter, since those of libraries execute front matter that begins with `---js`. */
function split(document: string): { head: string; body: string; bodyLine: number } {
	const begin = /^\uFEFF?---[ \t]*\r?\n/.exec(document)
	if (!begin) throw invalid(1, 'a skill must begin with front matter between two lines of ---')
	const from = begin[0].length
	const fence = /^---[ \t]*(?:\r?\n|$)/m
	const end = fence.exec(document.slice(from, from + LIMIT_BYTES + 8))
	if (!end) {
		throw invalid(1, `the front matter does not end: write a line of --- after it, within ${LIMIT_BYTES} bytes`)
	}
	const head = document.slice(from, from + end.index)
	const bytes = Buffer.byteLength(head)
	if (bytes > LIMIT_BYTES) throw invalid(1, `the front matter has ${bytes} bytes; the limit is ${LIMIT_BYTES}`)
	return {
		head,
		body: document.slice(from + end.index + end[0].length),
		bodyLine: head.split('\n').length + 2,
	}
}

/** Rejects deep nesting, references and too many tokens before they are parsed. */
function checkTokens(head: string): void {
	let line = 2
	let count = 0
	let flow = 0
	let indicators = 0
	for (const token of new Lexer().lex(head)) {
		if (++count > TOKEN_LIMIT)
			throw invalid(line, 'the front matter has too many parts; remove those that are not needed')
		switch (token[0]) {
			case '&':
			case '*':
				throw invalid(
					line,
					`anchors and aliases (${excerpt(token)}) are not supported; write the value out, or quote it`,
				)
			case '!':
				throw invalid(line, `tags (${excerpt(token)}) are not supported; remove the tag, or quote the value`)
			case '%':
				if (token.length > 1) throw invalid(line, `directives (${excerpt(token)}) are not supported; remove it`)
				break
			case '[':
			case '{':
				flow++
				break
			case ']':
			case '}':
				flow--
				break
		}
		if (token === '---' || token === '...') throw invalid(line, 'the front matter must be one YAML document')
		if (token === '-' || token === '?' || token === ':') indicators++
		else if (token === '\n' || token === '\u001f') indicators = 0
		if (flow > DEPTH_LIMIT || indicators > DEPTH_LIMIT)
			throw invalid(line, `nested more than ${DEPTH_LIMIT} levels deep; flatten it`)
		for (let at = token.indexOf('\n'); at >= 0; at = token.indexOf('\n', at + 1)) line++
	}
}

function excerpt(token: string): string {
	return token.length > 20 ? `${token.slice(0, 20)}…` : token
}

function pathKey(path: readonly (string | number)[]): string {
	return JSON.stringify(path)
}
