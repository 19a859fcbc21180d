/** Any server that speaks OpenAI's chat completions. */
import { malformed } from './answer.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import { bearer, OPENAI_URL, send } from './http.ts'
import { ChatReader } from './openai-answer.ts'
import { bodyOf } from './openai-request.ts'
import type { Provider } from './provider.ts'

export const openai: Provider = providerOf({
	optional: [
		'temperature',
		'top_p',
		'max_tokens',
		'reasoning_effort',
		'parallel_tool_calls',
		'stop',
		'seed',
		'frequency_penalty',
		'presence_penalty',
		'verbosity',
	],
	exchange,
})

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const body = bodyOf(order, request, traits)
	let type = ''
	const reader = new ChatReader(answer, request.tools)
	try {
		const sent = { path: '/chat/completions', headers: bearer(order), body }
		const content = await send(order, OPENAI_URL, sent, signal, (chunk) => reader.take(chunk))
		if (typeof content.body === 'object') {
			reader.take(content.body)
			if (!answer.isUntouched) answer.finishWord ||= 'stop'
		}
		type = content.type
	} finally {
		reader.end()
	}
	if (!answer.isUntouched) return
	const what = type.includes('event-stream') ? 'an empty stream' : type || 'nothing'
	throw malformed(`the server answered with ${what} instead of a stream of events; is base_url right? Most end in /v1`)
}
