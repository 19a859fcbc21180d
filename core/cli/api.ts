import { tokenFor } from './logins.ts'
import { addressBook } from './address.ts'
import type { Api, CliError, EventOptions, RequestOptions, StreamedEvent } from './contract.ts'
import { bytesOf, mustBeGateway, parse, send, textOf } from './connection.ts'
import type { Connection } from './connection.ts'

export interface ApiOptions {
	env: Readonly<NodeJS.ProcessEnv>
	home: string
	signal: AbortSignal
	/** As in `Connection`. */
	silent_ms?: number
}

/** Time limit of a request that begins after Ctrl-C, such as a cancellation. */
const AFTER_ABORT_MS = 5_000

export interface OpenApi extends Api {
	/** The error to show if the server that has responded so far is not a gateway. Never throws. */
	serverProblem(): Promise<CliError | undefined>
}

/** Bytes are sent unchanged, anything else as JSON. */
function bodyOf(body: unknown): { body: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> } {
	if (!(body instanceof Uint8Array)) return { body: JSON.stringify(body) }
	return { body: new Uint8Array(body), headers: { 'content-type': 'application/octet-stream' } }
}

/** The client of a command. Address and token are determined for each request. */
export function openApi({ env, home, signal, silent_ms }: ApiOptions): OpenApi {
	const connection: Connection = {
		...addressBook(env, home),
		...(!env.SVC_URL && { home }),
		...(silent_ms !== undefined && { silent_ms }),
		headers(address) {
			const token = tokenFor(env, home, address)
			return token ? { authorization: `Bearer ${token}` } : {}
		},
	}
	let answered = false
	return {
		get url() {
			return connection.url()
		},
		async serverProblem() {
			if (!answered) return undefined
			return mustBeGateway(connection.url()).then(
				() => undefined,
				(error: CliError) => error,
			)
		},
		async request<T>(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<T> {
			// A request that begins after Ctrl-C still has to be sent.
			const until = options.signal ?? (signal.aborted ? AbortSignal.timeout(AFTER_ABORT_MS) : signal)
			const init = { method, signal: until, ...(body !== undefined && bodyOf(body)) }
			const response = await send(connection, path, init, options)
			answered = true
			// Every response of a gateway has one, unless a proxy removed it.
			if (!response.headers.has('x-request-id')) await mustBeGateway(connection.url())
			if (options.bytes) return (await bytesOf(response, connection)) as T
			const text = await textOf(response, connection)
			return (text === '' ? undefined : parse(text, connection)) as T
		},
		async *events(query: Record<string, string>, options: EventOptions = {}): AsyncGenerator<StreamedEvent> {
			const { follow } = await import('./event-stream.ts')
			const until = options.signal ? AbortSignal.any([signal, options.signal]) : signal
			yield* follow(connection, query, { ...options, signal: until })
		},
	}
}
