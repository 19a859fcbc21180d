import { wireName } from '../wire-name.ts'
import type { ModelRequest, Turn } from './provider.ts'

/** The request for a server that accepts no tools: they are described in the system prompt, and calls and results are text. */
export function toolsInText({ system, turns, tools, ...rest }: ModelRequest): ModelRequest {
	const texts = turns.map(inText)
	if (tools.length === 0) return { ...rest, system, turns: texts, tools }
	const list = tools.map(({ name, description, parameters }) =>
		JSON.stringify({ name: wireName(name), description, parameters }),
	)
	const how = [
		'You can call these tools:',
		...list,
		'To call one, write nothing but this, once for each call, with the name and the arguments as JSON:',
		'<tool_call>{"name": "NAME", "arguments": {}}</tool_call>',
		'The results come in <tool_response> tags. Where no tool is needed, answer as usual.',
	].join('\n')
	return { ...rest, system: system === null ? how : `${system}\n\n${how}`, turns: texts, tools: [] }
}

function inText(turn: Turn): Turn {
	if (turn.role === 'tool') {
		const { name, content: result, attachments } = turn
		const content = `<tool_response name="${wireName(name)}">\n${result}\n</tool_response>`
		return { role: 'user', content, ...(attachments && { attachments }) }
	}
	if (turn.role === 'user' || turn.tool_calls.length === 0) return turn
	const calls = turn.tool_calls.map(
		({ name, arguments: args }) =>
			`<tool_call>{"name": ${JSON.stringify(wireName(name))}, "arguments": ${args}}</tool_call>`,
	)
	return {
		role: 'assistant',
		content: [turn.content, ...calls].filter((text) => text !== '').join('\n'),
		tool_calls: [],
	}
}
