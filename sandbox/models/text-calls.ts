/** Finds tool calls in the text of an answer, which servers whose template does not parse them leave there. */
import { isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import { wireName } from '../wire-name.ts'
import type { ToolCallRequest, ToolSpec } from '../../core/protocol.ts'
import { heldBack } from './think-tags.ts'

type Call = Omit<ToolCallRequest, 'id'>

/** The possible beginnings of a call in text form. */
const CALL_OPENERS: readonly string[] = [
	'<tool_call>',
	'<function_calls>',
	'<function_call>',
	'<function=',
	'<invoke ',
	'[TOOL_CALLS]',
	'<|python_tag|>',
	'<|tool_call|>',
	'<|tool_calls_section_begin|>',
	'<｜tool▁calls▁begin｜>',
	'<｜tool▁call▁begin｜>',
]

/**
 * Null if there are none. Only calls of offered tools count, and no call in a code fence with text around it: there a model shows
 * an example. `before`: the preceding text. `content` of the result: the text around the calls.
 */
export function callsInText(
	content: string,
	tools: readonly ToolSpec[],
	before = '',
): { content: string; calls: Call[] } | null {
	const names = new Set(tools.flatMap(({ name }) => [name, wireName(name)]))
	const isCall = (call: Call): boolean => names.has(call.name)
	const bare = before.trim() === '' ? bareCalls(content).filter(isCall) : []
	if (bare.length > 0) return { content: '', calls: bare }
	if (!CALL_OPENERS.some((opener) => content.includes(opener))) return null
	const text = before + content
	const fences = [...text.matchAll(/```[\s\S]*?(```|$)/g)].map(({ index, 0: { length } }) => [index, index + length])
	const calls: Call[] = []
	let rest = content
	for (const { pattern, read } of FORMS) {
		// Both only advance, for linear time: an answer may be full of calls and fences.
		let from = before.length
		let fence = 0
		rest = rest.replaceAll(pattern, (whole: string, ...groups: unknown[]) => {
			const at = fences.length === 0 ? -1 : text.indexOf(whole, from)
			if (at >= 0) from = at + whole.length
			while ((fences[fence]?.[1] ?? Infinity) <= at) fence++
			if (at >= (fences[fence]?.[0] ?? Infinity)) return whole
			const found = read(groups.map(String)).filter(isCall)
			calls.push(...found)
			return found.length > 0 ? '' : whole
		})
	}
	return calls.length > 0 ? { content: rest.replaceAll(WRAPPERS, '').trim(), calls } : null
}

/** Tags around several calls. */
const WRAPPERS = /<｜tool▁calls▁(begin|end)｜>|<\|tool_calls_section_(begin|end)\|>|<\/?function_calls>/g

/** Forms of known templates. A closing tag may be missing at the end of the text. */
const FORMS: readonly { pattern: RegExp; read(groups: string[]): Call[] }[] = [
	// DeepSeek
	{
		pattern:
			/<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([^\s<｜]+)(?:<｜tool▁sep｜>)?([\s\S]*?)(?:<｜tool▁call▁end｜>|$)/g,
		read: ([name = '', args = '']) => [{ name, arguments: unfenced(args, /^```(?:json)?/) || '{}' }],
	},
	// Kimi
	{
		pattern:
			/<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>([\s\S]*?)(?:<\|tool_call_end\|>|$)/g,
		read: ([name = '', args = '']) => [{ name, arguments: args.trim() || '{}' }],
	},
	// Hermes and Qwen: JSON; Qwen3-Coder and GLM: tags within
	{
		pattern: /<(tool_call|function_call)>([\s\S]*?)(?:<\/\1>|$)/g,
		read: ([, body = '']) => inJson(body) ?? functionTags(body) ?? argumentTags(body),
	},
	{ pattern: /<\|tool_call\|>([\s\S]*?)(?:<\|\/tool_call\|>|$)/g, read: ([body = '']) => inJson(body) ?? [] },
	// Mistral: a list, or name and arguments
	{
		pattern: /\[TOOL_CALLS\]\s*([\w.-]+)\s*(?:\[CALL_ID\][\w-]+\s*)?\[ARGS\]([\s\S]*?)(?=\[TOOL_CALLS\]|$)/g,
		read: ([name = '', args = '']) => [{ name, arguments: args.trim() || '{}' }],
	},
	{ pattern: /\[TOOL_CALLS\]([\s\S]*)$/g, read: ([body = '']) => inJson(body) ?? [] },
	// Llama
	{ pattern: /<\|python_tag\|>([\s\S]*?)(?:<\|e[om]\w*\|>|$)/g, read: ([body = '']) => inJson(body) ?? [] },
	{ pattern: /(<function=[\s\S]*?(?:<\/function>|$))/g, read: ([body = '']) => functionTags(body) ?? [] },
	// The form of Claude
	{
		pattern: /<invoke name="([^"]+)">([\s\S]*?)(?:<\/invoke>|$)/g,
		read: ([name = '', body = '']) => [
			{ name, arguments: objectOf(blocksIn(body, /<parameter name="([^"]+)">/g, '</parameter>')) },
		],
	},
]

/** The whole text is one call, or a list of calls, as JSON; perhaps in a fence. */
function bareCalls(content: string): Call[] {
	const text = unfenced(content, /^```(?:json|tool_call|tool_code)?/)
	if (!/^[[{]/.test(text)) return []
	const value = jsonIn(text)
	const list = Array.isArray(value) ? value : [value]
	const allowed = new Set(['name', 'arguments', 'parameters', 'type', 'id', 'function'])
	const isPlain = (one: unknown): boolean => isObject(one) && Object.keys(one).every((key) => allowed.has(key))
	return list.every(isPlain) ? callsIn(value) : []
}

/** `{"name": …, "arguments": …}`, a list of them, or several one after another. */
function inJson(body: string): Call[] | undefined {
	const text = body.trim()
	const listed = text.replaceAll(/\}([\s;]+)\{/g, (whole, between: string) => (/[;\n]/.test(between) ? '},{' : whole))
	const value = jsonIn(text) ?? jsonIn(`[${listed}]`)
	return value === undefined ? undefined : callsIn(value)
}

function callsIn(value: unknown): Call[] {
	return (Array.isArray(value) ? value : [value]).flatMap((one: unknown) => {
		if (!isObject(one)) return []
		const call = isObject(one.function) ? one.function : one
		const { name } = call
		const args = call.arguments ?? call.parameters ?? {}
		if (typeof name !== 'string') return []
		return [{ name, arguments: typeof args === 'string' ? args : JSON.stringify(args) }]
	})
}

/** `<function=NAME><parameter=KEY>value</parameter></function>`, or JSON instead of the parameters. */
function functionTags(body: string): Call[] | undefined {
	const calls = [...body.matchAll(/<function=([\w.-]+)>([\s\S]*?)(?:<\/function>|$)/g)].map(
		([, name = '', inner = '']) => {
			const parameters = [...blocksIn(inner, /<parameter=([\w.-]+)>/g, '</parameter>')]
			const unwrapped = parameters.map(([key, value]) => [key, value.replace(/^\n/, '').replace(/\n$/, '')] as const)
			const isJson = inner.trim().startsWith('{')
			return { name, arguments: isJson ? inner.trim() : objectOf(unwrapped) }
		},
	)
	return calls.length > 0 ? calls : undefined
}

/** `NAME<arg_key>KEY</arg_key><arg_value>value</arg_value>` */
function argumentTags(body: string): Call[] {
	const [name = ''] = /^[\w.-]+/.exec(body.trim()) ?? []
	const pairs = blocksIn(body, /<arg_key>([^<]*)<\/arg_key>\s*<arg_value>/g, '</arg_value>')
	return [{ name, arguments: objectOf(pairs) }]
}

/** Values that are valid JSON are parsed; others are strings. */
function objectOf(pairs: Iterable<readonly [key: string, value: string]>): string {
	const entries = [...pairs].map(([key, value]) => [key.trim(), jsonIn(value.trim()) ?? value] as const)
	return JSON.stringify(Object.fromEntries(entries))
}

/**
 * The texts between each match of `open`, whose group is the key, and the next `close`. In linear time: a pattern for the whole block
 * would search for a missing end once for each beginning.
 */
function* blocksIn(text: string, open: RegExp, close: string): Generator<[key: string, value: string]> {
	let from = 0
	for (const { index, 0: opening, 1: key = '' } of text.matchAll(open)) {
		if (index < from) continue
		const start = index + opening.length
		const end = text.indexOf(close, start)
		if (end < 0) return
		yield [key, text.slice(start, end)]
		from = end + close.length
	}
}

/** The text without surrounding white space and code fence. */
function unfenced(content: string, fence: RegExp): string {
	const text = content.trim()
	const [opening = ''] = fence.exec(text) ?? []
	return text.slice(opening.length, text.endsWith('```') ? -3 : undefined).trim()
}

/** The beginning of a text that is a call in JSON. Below this length it cannot be decided. */
const BARE = /^(```\w*\s*)?\[?\s*\{\s*"(name|function|type|id|parameters|arguments)"/
const BARE_LENGTH = 40
/** That beginning, or any other text, must be within this many characters. */
const BEGINNING = 4 * 1024

/** Holds back text from the possible beginning of a tool call in text form, so that calls are not streamed as text. */
export class TextGate {
	/** Text other than white space has been shown. */
	#hasShown = false
	#held = ''
	#isClosed = false

	/** Returns the text that may be shown. */
	take(piece: string): string {
		this.#held += piece
		if (this.#isClosed) return ''
		if (!this.#hasShown && this.#mayBeBare()) return ''
		const opener = firstOpener(this.#held)
		if (opener !== undefined) this.#isClosed = true
		const shown = this.#held.slice(0, opener ?? this.#held.length - heldBack(this.#held, CALL_OPENERS))
		this.#held = this.#held.slice(shown.length)
		this.#hasShown ||= shown.trim() !== ''
		return shown
	}

	/** The text that is held back. */
	get held(): string {
		return this.#held
	}

	#mayBeBare(): boolean {
		const text = this.#held.slice(0, BEGINNING).trimStart()
		if (text === '') return this.#held.length < BEGINNING
		if (!/^[[{`]/.test(text)) return false
		// Everything after such a beginning is held back too.
		this.#isClosed = BARE.test(text)
		return this.#isClosed || text.length < BARE_LENGTH
	}
}

/** The index at which the first call may begin. */
function firstOpener(text: string): number | undefined {
	let first: number | undefined
	for (const opener of CALL_OPENERS) {
		const at = text.indexOf(opener)
		if (at >= 0 && at < (first ?? Infinity)) first = at
	}
	return first
}
