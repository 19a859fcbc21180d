import type { ModelOrder } from '../../core/protocol.ts'
import { ModelError } from './provider.ts'

/** Of one response: the longest answer that is taken, a chunk of 250 bytes for each four characters. */
const RESPONSE_LIMIT_BYTES = 64 * 1024 * 1024

/**
 * The `fetch` that is handed to an SDK: adds the order's query and headers, and follows no redirect, which would carry the
 * conversation to an address that is not configured. `bounds: 'errors'`: the caller counts the bytes of answers itself.
 */
export function fetchFor(
	{ query = {}, headers = {} }: ModelOrder,
	bounds: 'all' | 'errors' = 'all',
): typeof globalThis.fetch {
	return async (input, init) => {
		const url = new URL(input instanceof Request ? input.url : input)
		for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
		const sent = new Headers(init?.headers)
		for (const [name, value] of Object.entries(headers)) sent.set(name, value)
		const response = await globalThis.fetch(url, { ...init, headers: sent, redirect: 'manual' })
		return response.ok && bounds === 'errors' ? response : bounded(response)
	}
}

/** Throws ModelError if the address is not one. */
export function addressOf({ base_url }: ModelOrder, standard: string): string {
	const address = base_url ?? standard
	if (URL.canParse(address)) return address
	const message = `"${address}" is no address; set base_url of the provider in gateway.yaml`
	throw new ModelError('model_rejected', message, { retryable: false })
}

/** Throws ModelError once a response is longer than is taken. */
export function byteCount(): (part: Uint8Array) => void {
	let bytes = 0
	return (part) => {
		bytes += part.byteLength
		if (bytes <= RESPONSE_LIMIT_BYTES) return
		throw new ModelError('model_malformed', `the server sent more than ${RESPONSE_LIMIT_BYTES} bytes`, {
			retryable: false,
		})
	}
}

/** Without it, a server that never ends a line would fill the thread's memory, since whole lines are read. */
function bounded(response: Response): Response {
	if (!response.body) return response
	const count = byteCount()
	const body = response.body.pipeThrough(
		new TransformStream<Uint8Array, Uint8Array>({
			transform(part, controller) {
				count(part)
				controller.enqueue(part)
			},
		}),
	)
	return new Response(body, response)
}
