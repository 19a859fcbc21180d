/** Any server that speaks OpenAI's chat completions. */
import { malformed } from './answer.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import { ChatReader } from './openai-answer.ts'
import { bodyOf } from './openai-request.ts'
import { clientFor, readError } from './openai-sdk.ts'
import type { Provider } from './provider.ts'
import { readResponse } from './read-response.ts'

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
	read: readError,
})

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const options = { signal, timeout: order.timeout_ms, maxRetries: 0 }
	const response = await clientFor(order)
		.chat.completions.create(bodyOf(order, request, traits), options)
		.asResponse()
	const reader = new ChatReader(answer, request.tools)
	try {
		const said = await readResponse(response)
		if (said.kind === 'events') for await (const chunk of said.events) reader.take(chunk)
		else if (typeof said.body === 'object') {
			reader.take(said.body)
			if (!answer.isUntouched) answer.finishWord ||= 'stop'
		}
	} finally {
		reader.end()
	}
	if (!answer.isUntouched || signal.aborted) return
	const type = response.headers.get('content-type')
	const what = type?.includes('event-stream') === true ? 'an empty stream' : (type ?? 'nothing')
	throw malformed(`the server answered with ${what} instead of a stream of events; is base_url right? Most end in /v1`)
}
