/** The bare counterpart of a run: the `openai` package in loops side by side, streaming and collecting the text. */
import OpenAI from 'openai'
import { answerWith } from '../peer.ts'

export interface BareCalls {
	/** Of the model server. */
	url: string
	calls: number
	/** Loops side by side. */
	lanes: number
	/** Earlier turns that every call carries. */
	turns: number
}

/** Milliseconds: the whole, and each call. */
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

async function callAll({ url, calls, lanes, turns }: BareCalls): Promise<BareTimes> {
	const client = clientFor(url)
	const history: OpenAI.ChatCompletionMessageParam[] = Array.from({ length: turns }, () => [
		{ role: 'user' as const, content: 'hello' },
		{ role: 'assistant' as const, content: 'word '.repeat(40) },
	]).flat()
	const each: number[] = []
	let left = calls
	const lane = async (): Promise<void> => {
		while (left-- > 0) {
			const began = performance.now()
			const stream = await client.chat.completions.create({
				model: 'bench',
				stream: true,
				stream_options: { include_usage: true },
				messages: [...history, { role: 'user', content: 'hello' }],
			})
			let text = ''
			for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
			if (!text.endsWith('word39 ')) throw new Error(`an answer is not whole: "${text}"`)
			each.push(performance.now() - began)
		}
	}
	const began = performance.now()
	await Promise.all(Array.from({ length: lanes }, lane))
	return { ms: performance.now() - began, each }
}

answerWith({ callAll })
