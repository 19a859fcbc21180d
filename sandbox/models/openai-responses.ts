/** OpenAI's Responses API, stateless: nothing is stored there, and reasoning comes back encrypted. */
import type OpenAI from 'openai'
import { malformed } from './answer.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import type { Thrown } from './failures.ts'
import { ResponseReader } from './openai-responses-answer.ts'
import { responseBody } from './openai-responses-request.ts'
import { clientFor, readError } from './openai-sdk.ts'
import type { Provider } from './provider.ts'
import { readResponse } from './read-response.ts'

export const openaiResponses: Provider = providerOf({
	optional: [
		'temperature',
		'top_p',
		'max_output_tokens',
		'parallel_tool_calls',
		'reasoning.summary',
		'reasoning.effort',
		'reasoning',
		'text.verbosity',
		'include',
		'store',
	],
	exchange,
	read,
})

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const options = { signal, timeout: order.timeout_ms, maxRetries: 0 }
	const body = responseBody(order, request, traits) as OpenAI.Responses.ResponseCreateParams
	const response = await clientFor(order).responses.create(body, options).asResponse()
	const reader = new ResponseReader(answer)
	const said = await readResponse(response)
	if (said.kind === 'events') for await (const event of said.events) reader.take(event)
	else if (typeof said.body === 'object') reader.takeWhole(said.body)
	if (!answer.isUntouched || signal.aborted) return
	const type = response.headers.get('content-type') ?? 'nothing'
	throw malformed(
		`the server answered with ${type} instead of a response; a server without /responses is of kind openai`,
	)
}

/** The refusal of encrypted reasoning names no field. */
function read(error: unknown): Thrown {
	const thrown = readError(error)
	const isAboutInclude = thrown.kind === 'server' && /encrypted content is not supported/i.test(thrown.message)
	return isAboutInclude ? { ...thrown, param: 'include' } : thrown
}
