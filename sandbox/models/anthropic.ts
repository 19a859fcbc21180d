/** Anthropic's Messages API. */
import Anthropic, { APIConnectionError, APIConnectionTimeoutError, APIError } from '@anthropic-ai/sdk'
import { malformed } from './answer.ts'
import { MessageReader } from './anthropic-answer.ts'
import { messageBody } from './anthropic-request.ts'
import { clientCache } from './clients.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import { errorIn, StreamError } from './failures.ts'
import type { Thrown } from './failures.ts'
import { addressOf, fetchFor } from './http.ts'
import type { Provider } from './provider.ts'
import { readResponse } from './read-response.ts'

const ANTHROPIC_URL = 'https://api.anthropic.com/v1'

export const anthropic: Provider = providerOf({
	optional: [
		'temperature',
		'top_p',
		'max_tokens',
		'stop_sequences',
		'thinking',
		'output_config',
		'cache_control',
		'tool_choice',
	],
	exchange,
	read,
})

/** Every option is set, since the SDK reads omitted ones from the environment and from files. */
const clientFor = clientCache(
	(order) =>
		new Anthropic({
			baseURL: addressOf(order, ANTHROPIC_URL),
			// The SDK insists on a key; a server that needs none gets no header.
			apiKey: order.api_key || 'none',
			authToken: null,
			webhookKey: null,
			defaultHeaders: order.api_key ? {} : { 'x-api-key': null },
			maxRetries: 0,
			logLevel: 'off',
			fetch: fetchFor(order, 'errors'),
		}),
)

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const body = messageBody(order, request, traits)
	// The SDK's own method adds the version, which the address holds already.
	const response = await clientFor(order)
		.post('/messages', { body, signal, timeout: order.timeout_ms, maxRetries: 0 })
		.asResponse()
	const reader = new MessageReader(answer)
	try {
		const said = await readResponse(response)
		if (said.kind === 'events') for await (const event of said.events) reader.take(event)
		else if (typeof said.body === 'object') reader.takeWhole(said.body)
	} finally {
		reader.end()
	}
	if (!answer.isUntouched || signal.aborted) return
	const type = response.headers.get('content-type') ?? 'nothing'
	throw malformed(`the server answered with ${type} instead of a message; is base_url right? It ends in /v1`)
}

function read(error: unknown): Thrown {
	if (error instanceof StreamError) return error.said
	if (error instanceof APIConnectionTimeoutError) return { kind: 'timeout' }
	if (error instanceof APIConnectionError) return { kind: 'connection' }
	if (!(error instanceof APIError)) return { kind: 'other' }
	const said = errorIn(error.error)
	const message = said ? `${error.status ?? ''} ${said.message}`.trim() : error.message
	const headers = error.headers instanceof Headers ? error.headers : undefined
	return { kind: 'server', status: error.status as number | undefined, message, code: said?.code, headers }
}
