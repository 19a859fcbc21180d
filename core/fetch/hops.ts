/** One request of a chain of redirects, and the next one. */
import { Fault } from '../errors.ts'
import { checkUrl } from './policy.ts'
import type { FetchPolicy } from './policy.ts'

/** As RequestInit, but the body is text, bytes or URLSearchParams, so that it can be sent again after a redirect. */
export type GuardedInit = {
	[K in 'method' | 'headers' | 'body' | 'signal' | 'redirect']?: RequestInit[K] | undefined
}

export interface Hop {
	url: URL
	method: string
	headers: Headers
	body: string | Uint8Array | null
	/** It has the origin that the caller named, and is not the target of a redirect. */
	named: boolean
}

/** Headers that the connection sets, or that would name a different site than the one that was checked. */
const reservedHeaders = [
	'host',
	'connection',
	'keep-alive',
	'proxy-connection',
	'proxy-authorization',
	'transfer-encoding',
	'content-length',
	'expect',
	'te',
	'trailer',
	'upgrade',
]
/** The only headers that are sent to another origin: no tokens, cookies or custom headers with keys. */
const harmlessHeaders = new Set(['accept', 'accept-language', 'content-language', 'content-type', 'user-agent'])

const redirectStatuses = new Set([301, 302, 303, 307, 308])

/** Throws `invalid_request` for a method, header or body that cannot be sent. */
export function hopOf(url: URL, named: boolean, init: GuardedInit): Hop {
	try {
		// Applies the checks of the Fetch standard; the address does not matter.
		const { method, headers } = new Request('http://localhost/', {
			method: init.method ?? 'GET',
			headers: init.headers ?? {},
		})
		for (const name of reservedHeaders) headers.delete(name)
		if (!headers.has('user-agent')) headers.set('user-agent', 'svc-gateway')
		const body = bodyOf(init.body, headers)
		if (body !== null && (method === 'GET' || method === 'HEAD')) throw new TypeError(`${method} takes no body`)
		return { url, method, headers, body, named }
	} catch (error) {
		if (!(error instanceof TypeError)) throw error
		throw new Fault('invalid_request', `this request cannot be sent: ${error.message}`, { cause: error })
	}
}

function bodyOf(body: RequestInit['body'], headers: Headers): Hop['body'] {
	const isForm = body instanceof URLSearchParams
	if (isForm || typeof body === 'string') {
		const type = isForm ? 'application/x-www-form-urlencoded' : 'text/plain'
		if (!headers.has('content-type')) headers.set('content-type', `${type};charset=UTF-8`)
		return body.toString()
	}
	if (body === null || body === undefined) return null
	if (body instanceof ArrayBuffer) return new Uint8Array(body)
	if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
	throw new TypeError('its body must be text, bytes or URLSearchParams')
}

/** The `location` of a redirect, unresolved; null for other answers. */
export function redirectOf(answer: { status: number; headers: Pick<Headers, 'get'> }): string | null {
	return redirectStatuses.has(answer.status) ? answer.headers.get('location') : null
}

/** The request after a redirect. Throws `address_refused`. */
export function nextHop(hop: Hop, status: number, location: string, policy: FetchPolicy): Hop {
	const url = URL.parse(location, hop.url.href)
	if (!url) throw new Fault('fetch_failed', `${hop.url.host} redirects to something that is not a URL`)
	try {
		checkUrl(url, policy, false)
	} catch (error) {
		if (!(error instanceof Fault)) throw error
		throw new Fault(error.code, `${hop.url.host} redirects to an address that is refused: ${error.message}`, {
			cause: error,
		})
	}
	if (hop.url.protocol === 'https:' && url.protocol === 'http:')
		throw new Fault('address_refused', `${hop.url.host} redirects from https to http; such a redirect is not followed`)

	const asGet =
		(status === 303 && hop.method !== 'GET' && hop.method !== 'HEAD') ||
		((status === 301 || status === 302) && hop.method === 'POST')
	const kept = new Headers()
	for (const [name, value] of hop.headers) {
		if (asGet && name.startsWith('content-')) continue
		if (url.origin === hop.url.origin || harmlessHeaders.has(name)) kept.append(name, value)
	}
	return { url, method: asGet ? 'GET' : hop.method, headers: kept, body: asGet ? null : hop.body, named: false }
}
