/** Finds tool calls that a model wrote into its text, since its server's template does not take them out. */
import { wireName } from '../../core/protocol.ts'
import type { ToolCallRequest, ToolSpec } from '../../core/protocol.ts'
import { isObject, parsed } from './values.ts'

type Call = Omit<ToolCallRequest, 'id'>

/** With these a call in text form may begin. */
export const CALL_OPENERS: readonly string[] = [
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

export interface TextCalls {
	/** The text around the calls. */
	content: string
	calls: Call[]
}

/**
 * Null where there is none. Only calls of tools that were offered count, and none in a code fence with text around it: there
 * a model shows what a call looks like. `before`: the text that comes before.
 */
export function callsInText(content: string, tools: readonly ToolSpec[], before = ''): TextCalls | null {
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
		rest = rest.replaceAll(pattern, (whole: string, ...groups: unknown[]) => {
			const at = text.indexOf(whole, before.length)
			if (fences.some(([from = 0, to = 0]) => at >= from && at < to)) return whole
			const found = read(groups.map(String)).filter(isCall)
			calls.push(...found)
			return found.length > 0 ? '' : whole
		})
	}
	return calls.length > 0 ? { content: rest.replaceAll(WRAPPERS, '').trim(), calls } : null
}

/** What stands around several calls. */
const WRAPPERS = /<｜tool▁calls▁(begin|end)｜>|<\|tool_calls_section_(begin|end)\|>|<\/?function_calls>/g

/** Forms of known templates. A closing tag may be missing at the end of the text. */
const FORMS: readonly { pattern: RegExp; read(groups: string[]): Call[] }[] = [
	// DeepSeek
	{
		pattern:
			/<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([^\s<｜]+)(?:<｜tool▁sep｜>)?\s*(?:```(?:json)?)?([\s\S]*?)(?:```)?\s*(?:<｜tool▁call▁end｜>|$)/g,
		read: ([name = '', args = '']) => [{ name, arguments: args.trim() || '{}' }],
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
		pattern: /\[TOOL_CALLS\]\s*([\w.-]+)\s*(?:\[CALL_ID\][\w-]+)?\s*\[ARGS\]([\s\S]*?)(?=\[TOOL_CALLS\]|$)/g,
		read: ([name = '', args = '']) => [{ name, arguments: args.trim() || '{}' }],
	},
	{ pattern: /\[TOOL_CALLS\]([\s\S]*)$/g, read: ([body = '']) => inJson(body) ?? [] },
	// Llama
	{ pattern: /<\|python_tag\|>([\s\S]*?)(?:<\|e[om]\w*\|>|$)/g, read: ([body = '']) => inJson(body) ?? [] },
	{ pattern: /(<function=[\s\S]*?(?:<\/function>|$))/g, read: ([body = '']) => functionTags(body) ?? [] },
	// Written in the way of Claude
	{
		pattern: /<invoke name="([^"]+)">([\s\S]*?)(?:<\/invoke>|$)/g,
		read: ([name = '', body = '']) => [
			{ name, arguments: objectOf(body.matchAll(/<parameter name="([^"]+)">([\s\S]*?)<\/parameter>/g)) },
		],
	},
]

/** The whole text is one call, or a list of calls, as JSON; perhaps in a fence. */
function bareCalls(content: string): Call[] {
	const text = content.trim().replace(/^```(?:json|tool_call|tool_code)?\s*([\s\S]*?)\s*```$/, '$1')
	if (!/^[[{]/.test(text)) return []
	const value = parsed(text)
	const list = Array.isArray(value) ? value : [value]
	const allowed = new Set(['name', 'arguments', 'parameters', 'type', 'id', 'function'])
	const isPlain = (one: unknown): boolean => isObject(one) && Object.keys(one).every((key) => allowed.has(key))
	return list.every(isPlain) ? callsIn(value) : []
}

/** `{"name": …, "arguments": …}`, a list of them, or several one after another. */
function inJson(body: string): Call[] | undefined {
	const text = body.trim()
	const value = parsed(text) ?? parsed(`[${text.replaceAll(/\}\s*[;\n]\s*\{/g, '},{')}]`)
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

/** `<function=NAME><parameter=KEY>value</parameter></function>`, or JSON in place of the parameters. */
function functionTags(body: string): Call[] | undefined {
	const calls = [...body.matchAll(/<function=([\w.-]+)>([\s\S]*?)(?:<\/function>|$)/g)].map(
		([, name = '', inner = '']) => {
			const parameters = inner.matchAll(/<parameter=([\w.-]+)>\n?([\s\S]*?)\n?<\/parameter>/g)
			const isJson = inner.trim().startsWith('{')
			return { name, arguments: isJson ? inner.trim() : objectOf(parameters) }
		},
	)
	return calls.length > 0 ? calls : undefined
}

/** `NAME<arg_key>KEY</arg_key><arg_value>value</arg_value>` */
function argumentTags(body: string): Call[] {
	const [name = ''] = /^[\w.-]+/.exec(body.trim()) ?? []
	const pairs = body.matchAll(/<arg_key>([\s\S]*?)<\/arg_key>\s*<arg_value>([\s\S]*?)<\/arg_value>/g)
	return [{ name, arguments: objectOf(pairs) }]
}

/** Values are JSON where they can be read as such, other than bare words. */
function objectOf(pairs: Iterable<RegExpExecArray>): string {
	const entries = [...pairs].map(([, key = '', value = '']) => [key.trim(), parsed(value.trim()) ?? value] as const)
	return JSON.stringify(Object.fromEntries(entries))
}
