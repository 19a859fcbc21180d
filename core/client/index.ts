/** Client of the agent gateway: its operations with their types, and its events as streams that resume. */
import createApi from 'openapi-fetch'
import type { Client } from 'openapi-fetch'
import { follow } from './follow.ts'
import type { Followed, FollowOptions, GatewayEvent } from './follow.ts'
import type { components, paths } from './schema.d.ts'

export { GatewayError } from './error.ts'
export type { Followed, FollowOptions, GatewayEvent } from './follow.ts'
export type { components, paths } from './schema.d.ts'

export interface GatewayOptions {
	/** Such as `http://127.0.0.1:3000`. */
	url: string
	/** Not needed on the gateway's own machine in loopback mode. Sent only to `url`. */
	token?: string | undefined
	/** Replaces the global `fetch`. */
	fetch?: typeof fetch | undefined
}

export type EventFilter = NonNullable<paths['/v1/events/stream']['get']['parameters']['query']>

export type NewRun = paths['/v1/agents/{name}/runs']['post']['requestBody']['content']['application/json']

export interface Gateway {
	/** Every operation: `await gateway.api.GET('/v1/runs/{run_id}', { params: { path: { run_id } } })`. See openapi-fetch. */
	api: Client<paths>
	/** Events as they happen, of all agents or those of a filter; see `follow`. */
	events(filter?: Omit<EventFilter, 'last_event_id'>, options?: FollowOptions): AsyncGenerator<Followed>
	/**
	 * Starts a run and yields its events up to `run.completed`, `run.failed` or `run.stopped`. Use `api` to answer a question
	 * (`question.asked`). The run continues if the caller stops reading.
	 */
	run(agent: string, run: NewRun, options?: Omit<FollowOptions, 'after'>): AsyncGenerator<GatewayEvent>
}

const ends = new Set(['run.completed', 'run.failed', 'run.stopped'])

/** Throws a `TypeError` for a token with invalid characters. */
export function createGateway({ url, token, fetch = globalThis.fetch }: GatewayOptions): Gateway {
	// The error of `fetch` for such a header would show the token.
	if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
		throw new TypeError('the token must consist of visible ASCII characters, without spaces and line breaks')
	const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
	const base = url.replace(/\/+$/, '')
	const open = (
		path: string,
		signal: AbortSignal | undefined,
		{ headers, ...init }: Omit<RequestInit, 'headers'> & { headers: Record<string, string> },
	): Promise<Response> =>
		fetch(base + path, {
			...init,
			headers: { ...authorization, accept: 'text/event-stream', ...headers },
			redirect: 'manual',
			...(signal && { signal }),
		})
	const stream = (query: object, after: string | undefined, signal: AbortSignal | undefined): Promise<Response> => {
		const given = Object.entries(query).filter(([, value]) => value !== undefined)
		const fields = new URLSearchParams(Object.fromEntries(given) as Record<string, string>)
		const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after }
		return open(`/v1/events/stream?${fields.toString()}`, signal, { headers })
	}

	return {
		api: createApi<paths>({ baseUrl: base, headers: authorization, fetch: (request) => fetch(request) }),
		events: (filter = {}, options = {}) => follow((after, signal) => stream(filter, after, signal), options),
		async *run(agent, run, options = {}) {
			// An attempt may have started the run although it failed, so all attempts have the same key.
			const key = crypto.randomUUID()
			let run_id: string | undefined
			const connect = async (after: string | undefined, signal: AbortSignal | undefined): Promise<Response> => {
				if (run_id !== undefined && after !== undefined) return stream({ run_id }, after, signal)
				const response = await open(`/v1/agents/${encodeURIComponent(agent)}/runs`, signal, {
					method: 'POST',
					headers: { 'content-type': 'application/json', 'idempotency-key': key },
					body: JSON.stringify(run),
				})
				run_id = response.headers.get('x-svc-run-id') ?? undefined
				return response
			}
			for await (const { event } of follow(connect, options, ({ event_type }) => ends.has(event_type))) yield event
		},
	}
}

export type Schemas = components['schemas']
