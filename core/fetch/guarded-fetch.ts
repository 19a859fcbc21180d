/**
 * The only HTTP client for addresses from outside: from a request, a model, a skill or a server's answer.
 *
 * A name is resolved when a connection is made, all of its addresses are checked, and the connection goes to one of them. So a
 * name that resolves differently a moment later is harmless. Each redirect is checked like a new address. Ignores the proxies
 * of the environment, keeps no cookies, speaks HTTP/1.1.
 *
 * Throws Faults: `invalid_request` (not a URL, method or header), `address_refused` (names the address and the reason; the
 * caller emits `security.violation`), `fetch_failed`, `fetch_too_large`, `fetch_timeout`. Throws the reason of a signal that
 * aborts. Reading the body throws the same.
 */
import { fetch as undiciFetch } from 'undici'
import { within } from '../util/deadline.ts'
import { Fault, isFault } from '../errors.ts'
import { boundedBody } from './body.ts'
import { openConnections, resolveChecked } from './connections.ts'
import type { ConnectionOptions, ConnectionPool, ResolveOptions } from './connections.ts'
import { startDeadline } from './deadline.ts'
import { errorOf } from './errors.ts'
import { hopOf, nextHop, redirectOf } from './hops.ts'
import type { GuardedInit } from './hops.ts'
import { checkUrl, parseUrl } from './policy.ts'

export type { GuardedInit } from './hops.ts'
export type { FetchPolicy } from './policy.ts'

export interface GuardedOptions extends ConnectionOptions {
	/** For everything, down to the last byte of the body. Infinity for streams without an end. */
	timeout_ms: number
	/** How many to follow. Default 3. */
	redirects?: number
	signal?: AbortSignal
}

/** Like fetch. Its connections are kept until it is disposed of, which ends requests in progress. */
export type GuardedFetcher = ((url: string | URL, init?: GuardedInit) => Promise<Response>) & AsyncDisposable

/** One request on its own connection, which is closed at the end of the body: read the body, or cancel it. */
export function guardedFetch(url: string | URL, init: GuardedInit, options: GuardedOptions): Promise<Response> {
	const connections = openConnections(options)
	return request(url, url, init, options, connections, () => void connections.destroy())
}

/**
 * For clients that accept a fetch function, such as the MCP SDK's transports. `named` is the address that the caller named:
 * `private_first` applies to its origin only, not to other addresses that a server's answers contain.
 */
export function fetcherFor(named: string | URL, options: GuardedOptions): GuardedFetcher {
	const connections = openConnections(options)
	return Object.assign(
		(url: string | URL, init: GuardedInit = {}) => request(named, url, init, options, connections, () => {}),
		{ [Symbol.asyncDispose]: () => connections.destroy() },
	)
}

/**
 * Checks an address without a request, to refuse at once an address to which every later request would be refused. A name that
 * does not resolve now passes. Throws `invalid_request`, `address_refused`.
 */
export async function checkAddress(
	address: string | URL,
	{ timeout_ms, ...resolving }: ResolveOptions & Pick<GuardedOptions, 'timeout_ms'>,
): Promise<void> {
	const url = parseUrl(address)
	checkUrl(url, resolving.policy, true)
	try {
		await within(timeout_ms, 'the name server', resolveChecked(url, true, resolving))
	} catch (error) {
		if (isFault(error, 'address_refused')) throw error
	}
}

const REDIRECTS = 3

async function request(
	named: string | URL,
	address: string | URL,
	init: GuardedInit,
	options: GuardedOptions,
	connections: ConnectionPool,
	release: () => void,
): Promise<Response> {
	const deadline = startDeadline(options.timeout_ms, [init.signal, options.signal], release)
	let at: URL | undefined
	const failed = (error: unknown): unknown =>
		deadline.signal.aborted ? deadline.signal.reason : at ? errorOf(error, at, options.max_bytes) : error
	try {
		const first = parseUrl(address)
		const isNamed = first.origin === parseUrl(named).origin
		checkUrl(first, options.policy, isNamed)
		let hop = hopOf(first, isNamed, init)
		for (let redirects = 0; ; redirects++) {
			at = hop.url
			const response = await undiciFetch(hop.url, {
				method: hop.method,
				headers: [...hop.headers],
				body: hop.body,
				redirect: 'manual',
				dispatcher: connections.of(hop.named),
				signal: deadline.signal,
			})
			const target = init.redirect === 'manual' ? null : redirectOf(response)
			if (target === null)
				return answerOf(response, hop.url, redirects > 0, options.max_bytes, { failed, ended: deadline.end })
			await response.body?.cancel()
			if (init.redirect === 'error')
				throw new Fault('fetch_failed', `${hop.url.host} redirects, and redirects are not followed`)
			if (redirects === (options.redirects ?? REDIRECTS))
				throw new Fault('fetch_failed', `${first.host} redirects more than ${redirects} times`)
			hop = nextHop(hop, response.status, target, options.policy)
		}
	} catch (error) {
		const failure = failed(error)
		deadline.abort(failure) // also ends a partly received answer
		throw failure
	}
}

type Fetched = Awaited<ReturnType<typeof undiciFetch>>

/** Converts undici's answer to the global Response class, for which clients test, with a bounded body. */
function answerOf(
	response: Fetched,
	url: URL,
	redirected: boolean,
	maxBytes: number,
	body: { failed: (error: unknown) => unknown; ended: () => void },
): Response {
	const { status, statusText } = response
	const answer = new Response(response.body && boundedBody(response.body, maxBytes, body), {
		status,
		statusText,
		headers: [...response.headers],
	})
	if (!response.body) body.ended()
	return Object.defineProperties(answer, { url: { value: url.href }, redirected: { value: redirected } })
}
