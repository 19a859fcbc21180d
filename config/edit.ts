/**
 * Changes one setting in the text of gateway.yaml and keeps every other byte: comments, their indentation and blank lines. (The
 * YAML library would reformat all of them.) A setting that is commented out by a `#`, as in the example, is switched on in its
 * place.
 */
import { isDeepStrictEqual } from 'node:util'
import { isMap, isNode, isScalar, parse, parseDocument, stringify } from 'yaml'
import type { Document, Pair, ParsedNode, Scalar, YAMLMap } from 'yaml'
import { Fault } from '../core/errors.ts'
import { isObject } from '../core/util/is-object.ts'

type Map = YAMLMap.Parsed

/** The value of a setting; undefined if it is not set. Throws `config_invalid` if the text is not YAML. */
export function settingAt(text: string, path: readonly string[]): unknown {
	const document = parsed(text)
	const node = document.getIn(path, true)
	return isNode(node) ? node.toJS(document) : undefined
}

/** The text with the setting. Throws `config_invalid` if the text is not YAML, or cannot be changed there. */
export function setSetting(text: string, path: readonly string[], value: unknown): string {
	const document = parsed(text)
	const wanted = withValue(document.toJS() as unknown, path, value)
	const changed = verified(put(text, document, path, value), wanted)
	if (changed !== undefined) return changed
	return byLibrary(document, wanted, () => document.setIn(path, value))
}

/** The text without the setting. Throws `not_found` if it is not set. */
export function unsetSetting(text: string, path: readonly string[]): string {
	const document = parsed(text)
	if (!document.hasIn(path)) throw new Fault('not_found', `${path.join('.')} is not set in the file`)
	const parent = document.getIn(path.slice(0, -1), true)
	// The plugin stays on without its last setting; an empty entry would be refused.
	if (path[0] === 'plugins' && path.length === 3 && isMap(parent) && parent.items.length === 1)
		return setSetting(text, path.slice(0, 2), true)
	const wanted = withoutValue(document.toJS() as unknown, path)
	const changed = isMap(parent) ? verified(cutOut(text, parent as Map, path.at(-1) ?? ''), wanted) : undefined
	if (changed !== undefined) return changed
	return byLibrary(document, wanted, () => document.deleteIn(path))
}

/**
 * The text with the setting under another name or in another section, with its comments. In the same section it keeps its place.
 * Throws `config_invalid` if the text cannot be changed there.
 */
export function renameSetting(text: string, from: readonly string[], to: readonly string[]): string {
	const document = parsed(text)
	const section = from.slice(0, -1)
	const pair = pairAt(document, from)
	if (!pair) throw new Fault('not_found', `${from.join('.')} is not set in the file`)
	const before = document.toJS() as unknown
	const value = pair.value === null ? null : (pair.value.toJS(document) as unknown)
	const wanted = withValue(withoutValue(before, from), to, value)
	const key = to.at(-1) ?? ''
	const { range } = pair.key
	if (range && isDeepStrictEqual(section, to.slice(0, -1))) {
		const renamed = verified(text.slice(0, range[0]) + inline(key) + text.slice(range[1]), wanted)
		if (renamed !== undefined) return renamed
	}
	return byLibrary(document, wanted, () => {
		document.deleteIn(from)
		// An empty section means all defaults.
		const left = document.getIn(section)
		if (section.length > 0 && isMap(left) && left.items.length === 0) document.setIn(section, null)
		const target = to.slice(0, -1)
		if (target.length > 0 && (document.getIn(target) ?? null) === null) document.setIn(target, document.createNode({}))
		const { commentBefore, comment } = pair.key
		const name = Object.assign(document.createNode(key), { commentBefore, comment })
		document.addIn(target, document.createPair(name, pair.value))
	})
}

function pairAt(document: Document.Parsed, path: readonly string[]): Pair<ParsedNode, ParsedNode | null> | undefined {
	const parent = document.getIn(path.slice(0, -1), true)
	return isMap(parent) ? pairOf(parent as Map, path.at(-1) ?? '') : undefined
}

/** For unusual syntax: keeps comments, but may change their indentation. */
function byLibrary(document: Document.Parsed, wanted: unknown, change: () => void): string {
	let cause: unknown
	try {
		change()
		const text = document.toString({ lineWidth: 0 })
		if (verified(text, wanted) !== undefined) return text
	} catch (error) {
		cause = error
	}
	throw new Fault('config_invalid', 'this setting cannot be changed here; change it in the file itself', {
		cause,
	})
}

function parsed(text: string): Document.Parsed {
	const document = parseDocument(text, { schema: 'core', stringKeys: true })
	const [error] = document.errors
	if (error)
		throw new Fault('config_invalid', `the file cannot be changed while it contains an error: ${error.message}`)
	if (document.contents !== null && !isMap(document.contents) && !isEmpty(document.contents))
		throw new Fault('config_invalid', 'the file cannot be changed: it is not a map of settings')
	return document as Document.Parsed
}

/** The text, if its settings are the wanted ones. */
function verified(text: string | undefined, wanted: unknown): string | undefined {
	if (text === undefined) return undefined
	try {
		const found = parse(text, { schema: 'core', stringKeys: true }) as unknown
		return isDeepStrictEqual(found ?? {}, wanted ?? {}) ? text : undefined
	} catch {
		return undefined
	}
}

function put(text: string, document: Document.Parsed, path: readonly string[], value: unknown): string | undefined {
	let map = document.contents as ParsedNode | null
	let indent = 0
	/** The start of the section: after the line with its name. */
	let begin = 0
	for (const [depth, key] of path.entries()) {
		const rest = path.slice(depth)
		if (isMap(map) && !map.flow) {
			const start = map.items[0]?.key.range?.[0] ?? map.range[0]
			indent = start - lineStart(text, start)
		}
		const pair = isMap(map) ? pairOf(map, key) : undefined
		if (isMap(map) && map.flow) return putIntoFlow(text, map, rest, value)
		if (!pair) {
			const end = isMap(map) ? lineEnd(text, lastOf(map)) : begin
			return insert(text, { begin, end, indent, path: rest, value })
		}
		if (rest.length === 1) return replace(text, pair, indent, value)
		// An explicit `null` must be replaced.
		if (isEmpty(pair.value) && pair.value?.range[0] !== pair.value?.range[1]) {
			return replace(text, pair, indent, withValue({}, rest.slice(1), value))
		}
		if (pair.value !== null && !isMap(pair.value) && !isEmpty(pair.value)) {
			throw new Fault('config_invalid', `${path.slice(0, depth + 1).join('.')} is not a map of settings in the file`)
		}
		begin = lineEnd(text, pair.key.range[1])
		indent += 2
		map = isMap(pair.value) ? pair.value : null
	}
	return undefined
}

/** Replaces a pair. A plain value keeps the rest of its line, such as a comment. */
function replace(
	text: string,
	{ key, value: old }: Pair<ParsedNode, ParsedNode | null>,
	indent: number,
	value: unknown,
) {
	const simple = !isObject(value) && !Array.isArray(value)
	const isBlock = old !== null && !isScalar(old) && !(old as Map).flow
	if (simple && !isBlock && old?.range && old.range[1] > old.range[0] && isOnOneLine(text, old.range)) {
		return text.slice(0, old.range[0]) + inline(value) + text.slice(old.range[1])
	}
	const from = lineStart(text, key.range?.[0] ?? 0)
	const to = lineEnd(text, old?.range ? Math.max(old.range[1], key.range?.[1] ?? 0) : (key.range?.[1] ?? 0), isBlock)
	return text.slice(0, from) + block([nameOf(key)], value, indent) + text.slice(to)
}

interface Insertion {
	/** The start of the section, and the end of its last setting; both at the start of a line. */
	begin: number
	end: number
	indent: number
	path: readonly string[]
	value: unknown
}

/** Inserts at the line where the setting is commented out, else after the last setting of the section. */
function insert(text: string, { begin, end, indent, path, value }: Insertion): string {
	const [key = '', ...rest] = path
	const found = switchedOff(text, begin, indent, key)
	if (!found) {
		const before = text.slice(0, end === 0 && indent === 0 ? text.length : end)
		const gap = before === '' || before.endsWith('\n') ? '' : '\n'
		return before + gap + block(path, value, indent) + text.slice(before.length)
	}
	const [from, to] = found
	if (rest.length === 0) return text.slice(0, from) + block([key], value, indent) + text.slice(to)
	const head = text.slice(0, from) + `${' '.repeat(indent)}${key}:\n`
	return insert(head + text.slice(to), { begin: head.length, end: head.length, indent: indent + 2, path: rest, value })
}

/** The line `#name: …` in the section that begins at `begin`, whose other lines are deeper or comments. */
function switchedOff(text: string, begin: number, indent: number, key: string): [number, number] | undefined {
	const prefix = `${' '.repeat(indent)}#${key}:`
	for (let at = begin; at < text.length;) {
		const end = lineEnd(text, at)
		const line = text.slice(at, end)
		if (line.startsWith(prefix) && /^\s/.test(line.slice(prefix.length))) return [at, end]
		const [blanks = ''] = /^ */.exec(line) ?? []
		// A blank line ends a section that is all commented out. A line with less indentation ends any section.
		if (indent > 0 && (line.trim() === '' || blanks.length < indent)) return undefined
		at = end
	}
	return undefined
}

function putIntoFlow(text: string, map: Map, path: readonly string[], value: unknown): string {
	const whole = withValue(map.toJSON() as unknown, path, value)
	return text.slice(0, map.range[0]) + inline(whole) + text.slice(map.range[1])
}

function cutOut(text: string, map: Map, key: string): string | undefined {
	const pair = pairOf(map, key)
	if (!pair) return undefined
	if (map.flow) {
		const { [key]: _, ...rest } = map.toJSON() as Record<string, unknown>
		return text.slice(0, map.range[0]) + inline(rest) + text.slice(map.range[1])
	}
	const isBlock = pair.value !== null && !isScalar(pair.value) && !(pair.value as Map).flow
	const to = lineEnd(text, Math.max(pair.value?.range[1] ?? 0, pair.key.range[1]), isBlock)
	return text.slice(0, lineStart(text, pair.key.range[0])) + text.slice(to)
}

function pairOf(map: Map, key: string): Pair<ParsedNode, ParsedNode | null> | undefined {
	return map.items.find((pair) => nameOf(pair.key) === key) as Pair<ParsedNode, ParsedNode | null> | undefined
}

function nameOf(key: unknown): string {
	return isScalar(key) ? String(key.value) : ''
}

function isEmpty(node: unknown): boolean {
	return isScalar(node) && (node as Scalar).value === null
}

/** The end of the last pair of a block map. */
function lastOf(map: Map): number {
	const last = map.items.at(-1)
	return Math.max(last?.value?.range?.[1] ?? 0, last?.key.range?.[1] ?? 0)
}

function isOnOneLine(text: string, [from, to]: readonly number[]): boolean {
	return !text.slice(from, to).includes('\n')
}

/** A value on one line, with the quotes that it needs, also within brackets. */
export function inline(value: unknown): string {
	return stringify([value], { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: false }).trim().slice(1, -1)
}

/** Whole lines: the names below each other, then the value. */
function block(path: readonly string[], value: unknown, indent: number): string {
	const nested = path.toReversed().reduce<unknown>((inner, key) => ({ [key]: inner }), value)
	const text = stringify(nested, { indent: 2, lineWidth: 0 })
	return text.replaceAll(/^(?=.)/gm, ' '.repeat(indent))
}

function lineStart(text: string, offset: number): number {
	return text.lastIndexOf('\n', offset - 1) + 1
}

/** The start of the next line. A block already includes its line end, so then `offset` is at that place. */
function lineEnd(text: string, offset: number, isBlock = false): number {
	if (isBlock && offset > 0 && text[offset - 1] === '\n') return offset
	const end = text.indexOf('\n', offset)
	return end === -1 ? text.length : end + 1
}

function withValue(settings: unknown, [key = '', ...rest]: readonly string[], value: unknown): unknown {
	const before = isObject(settings) ? settings : {}
	return { ...before, [key]: rest.length === 0 ? value : withValue(before[key], rest, value) }
}

/** A section that becomes empty is null, which means all defaults. */
function withoutValue(settings: unknown, [key = '', ...rest]: readonly string[]): unknown {
	const { [key]: inner, ...others } = settings as Record<string, unknown>
	const left = rest.length === 0 ? others : { ...(settings as object), [key]: withoutValue(inner, rest) }
	return Object.keys(left).length === 0 ? null : left
}
