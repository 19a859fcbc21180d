import OpenAI from 'openai'
import type { ModelOrder } from '../../core/protocol.ts'
import { ModelError } from './provider.ts'

const OPENAI_URL = 'https://api.openai.com/v1'

/** Pairs of address and key whose client is kept. A client is cheap to make; what costs is only doing so for every call. */
const CACHE_LIMIT = 16

/** Of one response: the longest answer that is taken, a chunk of 250 bytes for each four characters. */
const RESPONSE_LIMIT_BYTES = 64 * 1024 * 1024

const clients = new Map<string, OpenAI>()

/** Throws ModelError if the address is not one. Connections are kept alive by Node itself, for all clients together. */
export function clientFor({ base_url = OPENAI_URL, api_key }: ModelOrder): OpenAI {
	const name = JSON.stringify([base_url, api_key])
	const client = clients.get(name) ?? newClient(base_url, api_key)
	clients.delete(name)
	clients.set(name, client)
	const [oldest] = clients.keys()
	if (clients.size > CACHE_LIMIT && oldest !== undefined) clients.delete(oldest)
	return client
}

/** Every option is set explicitly, since the SDK reads omitted ones from the environment. */
function newClient(baseURL: string, api_key: string | undefined): OpenAI {
	if (!URL.canParse(baseURL)) {
		const message = `"${baseURL}" is no address; set base_url of the provider in gateway.yaml`
		throw new ModelError('model_rejected', message, { retryable: false })
	}
	return new OpenAI({
		baseURL,
		// The SDK insists on a key; a server that needs none gets no header.
		apiKey: api_key || 'none',
		defaultHeaders: api_key ? {} : { authorization: null },
		adminAPIKey: null,
		organization: null,
		project: null,
		webhookSecret: null,
		maxRetries: 0,
		logLevel: 'off',
		// A redirect would carry the conversation to an address that is not configured.
		fetchOptions: { redirect: 'manual' },
		fetch: boundedFetch,
	})
}

/** Without it, a server that never ends a line would fill the thread's memory, since the SDK reads whole lines. */
async function boundedFetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
	const response = await globalThis.fetch(url, init)
	if (!response.body) return response
	let bytes = 0
	const bounded = response.body.pipeThrough(
		new TransformStream<Uint8Array, Uint8Array>({
			transform(part, controller) {
				bytes += part.byteLength
				if (bytes > RESPONSE_LIMIT_BYTES) {
					const message = `the server sent more than ${RESPONSE_LIMIT_BYTES} bytes`
					throw new ModelError('model_malformed', message, { retryable: false })
				}
				controller.enqueue(part)
			},
		}),
	)
	return new Response(bounded, response)
}
