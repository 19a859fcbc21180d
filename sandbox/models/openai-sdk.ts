/** The `openai` package: clients, and what its errors mean. */
import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai'
import { clientCache } from './clients.ts'
import { StreamError } from './failures.ts'
import type { Thrown } from './failures.ts'
import { addressOf, fetchFor } from './http.ts'

const OPENAI_URL = 'https://api.openai.com/v1'

/** Throws ModelError if the address is not one. Every option is set, since the SDK reads omitted ones from the environment. */
export const clientFor = clientCache(
	(order) =>
		new OpenAI({
			baseURL: addressOf(order, OPENAI_URL),
			// The SDK insists on a key; a server that needs none gets no header.
			apiKey: order.api_key || 'none',
			defaultHeaders: order.api_key ? {} : { authorization: null },
			adminAPIKey: null,
			organization: null,
			project: null,
			webhookSecret: null,
			maxRetries: 0,
			logLevel: 'off',
			fetch: fetchFor(order, 'errors'),
		}),
)

export function readError(error: unknown): Thrown {
	if (error instanceof StreamError) return error.said
	if (error instanceof APIConnectionTimeoutError) return { kind: 'timeout' }
	if (error instanceof APIConnectionError) return { kind: 'connection' }
	if (!(error instanceof APIError)) return { kind: 'other' }
	const { status, message, headers } = error
	return {
		kind: 'server',
		status,
		message,
		code: String(error.code ?? error.type ?? ''),
		param: error.param ?? undefined,
		headers: headers instanceof Headers ? headers : undefined,
	}
}
