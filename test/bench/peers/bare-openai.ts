/** The bare counterpart of a run: concurrent loops with the `openai` package that stream and collect the text. */
import OpenAI from 'openai'
import { answerWith } from '../peer.ts'

export interface BareCalls {
	/** The model server's URL. */
	url: string
	calls: number
	/** Concurrent loops. */
	lanes: number
	/** Earlier turns in every call. */
	turns: number
	/** Each call offers a tool, and is followed by a second one with the tool's result. */
	withTool?: boolean
}

/** Milliseconds: in total, and of each call. */
export interface BareTimes {
	ms: number
	each: number[]
}

const clients = new Map<string, OpenAI>()

function clientFor(url: string): OpenAI {
	const client = clients.get(url) ?? new OpenAI({ baseURL: url, apiKey: 'bench', maxRetries: 0 })
	clients.set(url, client)
	return client
}

type Messages = OpenAI.ChatCompletionMessageParam[]

const tools: OpenAI.ChatCompletionFunctionTool[] = [
	{
		type: 'function',
		function: {
			name: 'bench_echo',
			description: 'Repeats a text.',
			parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
		},
	},
]

/** The complete text of an answer, or its tool call. */
async function ask(client: OpenAI, messages: Messages, withTool: boolean) {
	const stream = await client.chat.completions.create({
		model: 'bench',
		stream: true,
		stream_options: { include_usage: true },
		messages,
		...(withTool && { tools }),
	})
	let text = ''
	const call = { id: '', name: '', arguments: '' }
	for await (const { choices } of stream) {
		const delta = choices[0]?.delta
		text += delta?.content ?? ''
		for (const part of delta?.tool_calls ?? []) {
			call.id += part.id ?? ''
			call.name += part.function?.name ?? ''
			call.arguments += part.function?.arguments ?? ''
		}
	}
	return { text, call }
}

/** One run of a minimal agent: calls the tool that the model requests, and then calls the model again. */
async function once(client: OpenAI, messages: Messages, withTool: boolean): Promise<string> {
	const { text, call } = await ask(client, messages, withTool)
	if (!withTool) return text
	const { text: result } = JSON.parse(call.arguments) as { text: string }
	const { id } = call
	const asked = { id, type: 'function' as const, function: { name: call.name, arguments: call.arguments } }
	const answered: Messages = [
		...messages,
		{ role: 'assistant', tool_calls: [asked] },
		{ role: 'tool', tool_call_id: id, content: result },
	]
	return (await ask(client, answered, withTool)).text
}

async function callAll({ url, calls, lanes, turns, withTool = false }: BareCalls): Promise<BareTimes> {
	const client = clientFor(url)
	const history: Messages = Array.from({ length: turns }, () => [
		{ role: 'user' as const, content: 'hello' },
		{ role: 'assistant' as const, content: 'word '.repeat(40) },
	]).flat()
	const each: number[] = []
	let left = calls
	const lane = async (): Promise<void> => {
		while (left-- > 0) {
			const began = performance.now()
			const text = await once(client, [...history, { role: 'user', content: 'hello' }], withTool)
			if (!text.endsWith('word39 ')) throw new Error(`an answer is incomplete: "${text}"`)
			each.push(performance.now() - began)
		}
	}
	const began = performance.now()
	await Promise.all(Array.from({ length: lanes }, lane))
	return { ms: performance.now() - began, each }
}

answerWith({ callAll })
