/** OpenAI's Responses API, stateless: nothing is stored there, and reasoning comes back encrypted. */
import { malformed } from './answer.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import type { ServerError } from './failures.ts'
import { bearer, OPENAI_URL, send } from './http.ts'
import { ResponseReader } from './openai-responses-answer.ts'
import { responseBody } from './openai-responses-request.ts'
import type { Provider } from './provider.ts'

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
	named,
})

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const sent = { path: '/responses', headers: bearer(order), body: responseBody(order, request, traits) }
	const reader = new ResponseReader(answer)
	const { type, body } = await send(order, OPENAI_URL, sent, signal, (event) => reader.take(event))
	if (typeof body === 'object') reader.takeWhole(body)
	if (!answer.isUntouched) return
	throw malformed(
		`the server answered with ${type || 'nothing'} instead of a response; a server without /responses is of kind openai`,
	)
}

/** The refusal of encrypted reasoning names no field. */
function named(said: ServerError): ServerError {
	return /encrypted content is not supported/i.test(said.message) ? { ...said, param: 'include' } : said
}
