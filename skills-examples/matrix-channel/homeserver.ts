/** Requests to the homeserver, and their errors in the form that the gateway expects. */
import type { Link, LoadOptions } from '../../plugins/channels/adapter.ts'
import type { Config } from './index.ts'

/**
 * Returns the parsed body. Throws an error with a code if the request certainly had no effect, and an error without a code if that
 * is unknown, such as after a broken connection.
 */
export type Call = <T>(method: string, path: string[], options?: CallOptions) => Promise<T>

interface CallOptions {
	query?: Record<string, string>
	body?: object
	wait_ms?: number
}

export interface Homeserver {
	call: Call
	/** Loads the bytes at an address such as `mxc://example.org/abc`. Throws if there are more than `max_bytes`. */
	download(mxc: string, options: LoadOptions): Promise<Uint8Array>
	/** Stores bytes and returns their address. */
	upload(bytes: Uint8Array, media_type: string): Promise<string>
}

const UPLOAD_MS = 50_000
const MAX_ANSWER = 32 * 1024 * 1024

export function openHomeserver(link: Link<Config>, signal: AbortSignal): Homeserver {
	const root = link.config.api_root.replace(/\/$/, '')

	return {
		async call<T>(method: string, path: string[], { query, body, wait_ms = 15_000 }: CallOptions = {}): Promise<T> {
			const url = `client/v3/${path.map(encodeURIComponent).join('/')}`
			const bytes = await request(query ? `${url}?${new URLSearchParams(query)}` : url, MAX_ANSWER, {
				method,
				signal: AbortSignal.timeout(wait_ms),
				...(body && { body: JSON.stringify(body) }),
			})
			return JSON.parse(bytes.toString()) as T
		},
		async download(mxc, options) {
			const [, server = '', id = ''] = /^mxc:\/\/([^/]+)\/([^/]+)$/.exec(mxc) ?? []
			const url = `client/v1/media/download/${encodeURIComponent(server)}/${encodeURIComponent(id)}`
			return request(url, options.max_bytes, options)
		},
		async upload(bytes, media_type) {
			const answer = await request('media/v3/upload', MAX_ANSWER, {
				method: 'POST',
				headers: { 'content-type': media_type },
				body: Buffer.from(bytes),
				signal: AbortSignal.timeout(UPLOAD_MS),
			})
			return (JSON.parse(answer.toString()) as { content_uri: string }).content_uri
		},
	}

	async function request(
		path: string,
		max_bytes: number,
		init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> },
	): Promise<Buffer> {
		const response = await fetch(`${root}/_matrix/${path}`, {
			...init,
			headers: { 'content-type': 'application/json', ...init.headers, authorization: `Bearer ${link.token}` },
			redirect: 'error', // the token is for this server only
			signal: AbortSignal.any([signal, ...(init.signal ? [init.signal] : [])]),
		}).catch((error: Error) => {
			const { message } = (error.cause as Error | undefined) ?? error
			throw new Error(`${root} did not respond: ${message}`, { cause: error })
		})
		const parts: Uint8Array[] = []
		let size = 0
		for await (const part of response.body ?? []) {
			size += part.length
			if (size > max_bytes) throw new Error(`${root} answered with more than ${max_bytes} bytes`)
			parts.push(part)
		}
		const bytes = Buffer.concat(parts)
		if (response.ok) return bytes
		throw errorFrom(link, response, bytes.toString())
	}
}

function errorFrom(link: Link<Config>, { status, headers }: Response, text: string): Error {
	const message = `the homeserver answered with ${status}: ${text.slice(0, 200)}`
	if (status === 429) return link.error('limited', message, { retry_after_ms: retryAfter(headers, text) })
	if (status === 401) {
		const error = link.error('refused', `${message}; put a valid access token into the vault`)
		link.lost(error) // so that a message that is being sent waits for the next token
		return error
	}
	if (status === 400 || status === 413) return link.error('format', message)
	return status < 500 ? link.error('refused', message, { cause: status }) : new Error(message)
}

/** Newer servers send the header, older ones a field of the body. */
function retryAfter(headers: Headers, text: string): number {
	const ms = Number(headers.get('retry-after')) * 1000 || Number(/"retry_after_ms": ?(\d+)/.exec(text)?.[1])
	return ms > 0 ? ms : 1000
}

/** For `catch`: replaces the errors that something does not exist or is forbidden for the bot by a value. */
export function orElse<T>(fallback: T): (error: Error) => T {
	return (error) => {
		if (error.cause === 403 || error.cause === 404) return fallback
		throw error
	}
}
