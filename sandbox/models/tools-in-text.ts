import { wireName } from '../../core/protocol.ts'
import type { ModelRequest, Turn } from './provider.ts'

/** The request for a server that takes no tools: they are described in the system prompt, and calls and results are text. */
export function toolsInText({ system, turns, tools }: ModelRequest): ModelRequest {
	const said = turns.map(inText)
	if (tools.length === 0) return { system, turns: said, tools }
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
	return { system: system === null ? how : `${system}\n\n${how}`, turns: said, tools: [] }
}

function inText(turn: Turn): Turn {
	if (turn.role === 'tool') {
		return { role: 'user', content: `<tool_response name="${wireName(turn.name)}">\n${turn.content}\n</tool_response>` }
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
