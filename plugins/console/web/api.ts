/** Requests to the gateway's public API, at the page's own origin. */
import type { FieldError } from '../../../core/errors.ts'

/** An error response of the gateway, or no response. */
export class ApiError extends Error {
	/** 0: no response. */
	readonly status: number
	readonly code: string
	readonly errors: FieldError[]

	constructor(status: number, { message, code, errors }: { message?: string; code?: string; errors?: FieldError[] }) {
		super(message ?? `the gateway answered with ${status}`)
		this.status = status
		this.code = code ?? ''
		this.errors = errors ?? []
	}
}

const TOKEN = 'svc-token'

/** Dispatches `needed` when a request was refused because it had no valid token. */
export const tokenNeeded = new EventTarget()

/** Stores the token in this tab until the tab is closed. Null removes it. */
export function setToken(token: string | null): void {
	if (token === null) sessionStorage.removeItem(TOKEN)
	else sessionStorage.setItem(TOKEN, token)
}

export function hasToken(): boolean {
	return sessionStorage.getItem(TOKEN) !== null
}

/** As `fetch`, with the token. Throws `ApiError` for an error response, and without a response. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
	const headers = new Headers(init.headers)
	const token = sessionStorage.getItem(TOKEN)
	if (token !== null) headers.set('authorization', `Bearer ${token}`)
	let response: Response
	try {
		response = await fetch(path, { ...init, headers, credentials: 'same-origin', redirect: 'error' })
	} catch (error) {
		if (init.signal?.aborted) throw error
		throw new ApiError(0, { message: 'the gateway does not answer' })
	}
	if (response.ok) return response
	if (response.status === 401) tokenNeeded.dispatchEvent(new Event('needed'))
	throw new ApiError(response.status, await response.json().catch(() => ({})))
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
	const response = await send(path, { headers: { accept: 'application/json' }, ...(signal && { signal }) })
	return (await response.json()) as T
}

export async function agentNames(signal: AbortSignal): Promise<string[]> {
	return (await get<{ name: string }[]>('/v1/agents', signal)).map(({ name }) => name)
}

/** As `get`. Undefined if the reader lacks the permission, or the plugin is switched off. */
export async function getIfThere<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
	try {
		return await get<T>(path, signal)
	} catch (error) {
		if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined
		throw error
	}
}

/** Sends JSON. Undefined for a response without a body. */
export async function change<T>(method: string, path: string, body?: unknown): Promise<T> {
	const response = await send(path, {
		method,
		...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
	})
	const text = await response.text()
	return (text === '' ? undefined : JSON.parse(text)) as T
}

/** Encodes the values of a path: path`/v1/agents/${name}`. */
export function path(parts: TemplateStringsArray, ...values: (string | number)[]): string {
	return String.raw({ raw: parts }, ...values.map((value) => encodeURIComponent(value)))
}
