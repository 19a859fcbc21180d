/** Google's Gemini API. */
import { ApiError, GoogleGenAI } from '@google/genai/web'
import type { GenerateContentParameters } from '@google/genai/web'
import { malformed } from './answer.ts'
import { clientCache } from './clients.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import { errorIn, StreamError } from './failures.ts'
import type { Thrown } from './failures.ts'
import { ContentReader } from './google-answer.ts'
import { contentRequest } from './google-request.ts'
import { addressOf, fetchFor } from './http.ts'
import type { ModelOrder } from '../../core/protocol.ts'
import type { Provider } from './provider.ts'
import { listIn, objectIn, parsed, stringIn } from './values.ts'

const GOOGLE_URL = 'https://generativelanguage.googleapis.com/v1beta'

export const google: Provider = providerOf({
	optional: [
		'temperature',
		'topP',
		'maxOutputTokens',
		'stopSequences',
		'seed',
		'presencePenalty',
		'frequencyPenalty',
		'thinkingConfig',
		'toolConfig',
	],
	exchange,
	read,
})

/** The entry for browsers: the other one loads what signs in to Google's cloud. */
const clientFor = clientCache((order) => {
	const baseUrl = addressOf(order, GOOGLE_URL)
	return new GoogleGenAI({
		vertexai: false,
		apiKey: order.api_key || 'none',
		// The address holds the version already.
		httpOptions: { baseUrl, apiVersion: '', fetch: refusing(order) },
	})
})

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const asked = contentRequest(order, request, traits)
	const extra = order.extra_body && { httpOptions: { extraBody: order.extra_body } }
	const params = { ...asked, config: { ...asked.config, ...extra, abortSignal: signal } } as GenerateContentParameters
	const { models } = clientFor(order)
	const reader = new ContentReader(answer)
	if (traits.streaming === false) reader.take(await models.generateContent(params))
	else for await (const chunk of await models.generateContentStream(params)) reader.take(chunk)
	if (!answer.isUntouched || signal.aborted) return
	throw malformed('the server answered with something else than contents; is base_url right? It ends in /v1beta')
}

/** The SDK keeps neither headers nor the details of a refusal. */
function refusing(order: ModelOrder): typeof globalThis.fetch {
	const send = fetchFor(order)
	return async (input, init) => {
		const headers = new Headers(init?.headers)
		if (!order.api_key) headers.delete('x-goog-api-key')
		const response = await send(input, { ...init, headers })
		if (response.ok) return response
		const text = await response.text()
		const body = parsed(text)
		const said = errorIn(Array.isArray(body) ? body[0] : body)
		const wait = listIn(objectIn(objectIn(Array.isArray(body) ? body[0] : body).error).details)
			.map((detail) => Number.parseFloat(stringIn(objectIn(detail).retryDelay)))
			.find((seconds) => seconds >= 0)
		const told = new Headers(response.headers)
		if (wait !== undefined && !told.has('retry-after')) told.set('retry-after', String(wait))
		const message = `${response.status} ${said?.message ?? text}`.trim()
		throw new StreamError({ ...said, kind: 'server', status: response.status, message, headers: told })
	}
}

function read(error: unknown): Thrown {
	if (error instanceof StreamError) return named(error.said)
	if (error instanceof ApiError) {
		const said = errorIn(parsed(error.message)) ?? { kind: 'server', message: error.message }
		return named({ ...said, status: error.status })
	}
	// The SDK wraps what its `fetch` throws.
	const { cause } = error as { cause?: unknown }
	if (cause instanceof StreamError) return named(cause.said)
	return error instanceof Error && error.message.endsWith('sending request')
		? { kind: 'connection' }
		: { kind: 'other' }
}

/** A refusal of thinking names it in words of its own. */
function named(said: Extract<Thrown, { kind: 'server' }>): Thrown {
	const isAboutThinking = /thinking/i.test(said.message) && !/signature/i.test(said.message)
	return isAboutThinking ? { ...said, param: 'thinkingConfig' } : said
}
