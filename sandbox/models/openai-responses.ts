/** OpenAI's Responses API, stateless: the server stores nothing and returns reasoning encrypted. */
import { providerOf } from './dialect.ts'
import type { ServerError } from './failures.ts'
import { bearer } from './http.ts'
import { ResponseReader } from './openai-responses-answer.ts'
import { responseBody } from './openai-responses-request.ts'
import type { Provider } from './provider.ts'

export const openaiResponses: Provider = providerOf({
	kind: 'openai-responses',
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
	expected: 'a response; a server without /responses is of kind openai',
	requestOf: (order, request, traits) => ({
		path: '/responses',
		headers: bearer(order),
		body: responseBody(order, request, traits),
	}),
	readerFor: (answer) => new ResponseReader(answer),
	named,
})

/** The refusal of encrypted reasoning names no field. */
function named(reported: ServerError): ServerError {
	return /encrypted content is not supported/i.test(reported.message) ? { ...reported, param: 'include' } : reported
}
