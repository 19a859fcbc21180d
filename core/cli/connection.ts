/** HTTP requests to a gateway, and the errors for failed ones. */
import { HINT_HEADER } from '../errors.ts'
import type { FieldError, WireError } from '../errors.ts'
import { allBytes } from '../util/all-bytes.ts'
import { CliError, exitOf } from './contract.ts'
import type { RequestOptions } from './contract.ts'

/** No response of a gateway is larger. Another server's response must not exhaust the memory. */
const BODY_LIMIT = 64 * 1024 * 1024
/** For a file: the highest `attachments.max_mib`. */
const FILE_LIMIT = 100 * 1024 * 1024
const CHECK_MS = 3_000
/** Together with the check, longer than fetch's limit for connecting: after it, the server has accepted the connection. */
const SILENT_MS = 9_000
/** A healthy gateway may take almost as long: a waiting one on a cluster holds a request for 20 s while none works. */
const BRIEF_MS = 30_000

export interface Connection {
	/** Called for each request: a restarted gateway may have another port. */
	url(): string
	/** Called before `url`. Absent if the address is fixed. */
	checkAlive?(): Promise<void>
	/** Headers sent to this address, such as the token for it. */
	headers(this: void, url: string): Record<string, string>
	/** The home whose files state the address; absent if the user gave one. */
	home?: string
	/** For tests: how long a brief request waits before it checks whether the gateway responds at all. */
	silent_ms?: number
}

/** Sends a request. Throws a CliError if no server responds, or if the status is neither 2xx nor `accept`. */
export async function send(
	connection: Connection,
	path: string,
	init: RequestInit,
	{ accept, patient = false, brief = false }: Pick<RequestOptions, 'accept' | 'patient' | 'brief'> = {},
): Promise<Response> {
	await connection.checkAlive?.()
	const url = connection.url()
	const call = patient ? await patientFetch() : fetch
	using silence = brief ? giveUpOn(url, connection.silent_ms) : undefined
	const sent = call(url + path, {
		...init,
		...(silence && { signal: init.signal ? AbortSignal.any([init.signal, silence.signal]) : silence.signal }),
		// A redirect must not carry the token to another server.
		redirect: 'manual',
		headers: {
			...connection.headers(url),
			...(init.body !== undefined && { 'content-type': 'application/json' }),
			...(init.headers as Record<string, string>),
		},
	})
	const response = await sent.catch((error: unknown) => {
		if (silence?.signal.aborted || causeOf(error)?.code === 'UND_ERR_HEADERS_TIMEOUT') throw silent(url, error)
		throw unanswered(error, connection, url, init.signal)
	})
	if (response.ok || response.status === accept) return response
	if (response.status < 400) throw notAGateway(url)
	throw await refusal(response, connection)
}

/** Its signal aborts if the server stays silent; never after it is disposed of. */
function giveUpOn(url: string, silent_ms = SILENT_MS): Disposable & { signal: AbortSignal } {
	const silence = new AbortController()
	const giveUp = (): void => silence.abort(new DOMException('no answer', 'TimeoutError'))
	const check = async (): Promise<void> => {
		const signal = AbortSignal.timeout(Math.min(CHECK_MS, silent_ms))
		// Every gateway answers this at once, a waiting one too.
		const probe = await fetch(`${url}/healthz`, { redirect: 'manual', signal })
		await probe.body?.cancel()
	}
	const checked = setTimeout(() => void check().catch(giveUp), silent_ms)
	const last = setTimeout(giveUp, BRIEF_MS)
	return {
		signal: silence.signal,
		[Symbol.dispose]() {
			clearTimeout(checked)
			clearTimeout(last)
		},
	}
}

/** The global fetch gives up after 300 s without headers, and has no option for another limit. */
async function patientFetch(): Promise<typeof fetch> {
	// oxlint-disable-next-line no-restricted-imports -- the operator says where the gateway is, as for fetch itself
	const undici = await import('undici')
	const dispatcher = new undici.Agent({ headersTimeout: 0, bodyTimeout: 0 })
	return ((url: string, init: object) => undici.fetch(url, { ...init, dispatcher })) as unknown as typeof fetch
}

/** Throws a CliError if the server at this address is not a gateway. Asks /v1/health, which needs no token. */
export async function mustBeGateway(url: string): Promise<void> {
	const init = { redirect: 'manual', signal: AbortSignal.timeout(CHECK_MS) } as const
	const response = await fetch(`${url}/v1/health`, init).catch(() => undefined)
	if (!response) return // unknown: the server has stopped meanwhile
	const connection = { url: () => url, headers: () => ({}) }
	const health = parse(await textOf(response, connection), connection) as Record<string, unknown> | null
	if (typeof health?.generation !== 'number' || !Array.isArray(health.checks)) throw notAGateway(url)
}

function silent(url: string, cause: unknown): CliError {
	const advice = 'it may be suspended or overloaded; check its log, and restart it if that does not help'
	return new CliError('unavailable', `the gateway at ${url} accepts connections, but does not answer; ${advice}`, {
		cause,
	})
}

function causeOf(error: unknown): NodeJS.ErrnoException | undefined {
	return error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined) : undefined
}

function unanswered(
	error: unknown,
	{ home }: Connection,
	url: string,
	signal: AbortSignal | null | undefined,
): CliError {
	if (signal?.aborted && (signal.reason as Error | undefined)?.name !== 'TimeoutError')
		return new CliError('interrupted', '', { cause: error })
	const cause = causeOf(error)
	if (cause?.message === 'bad port') {
		const message = `${url} has a port that HTTP clients refuse to call, such as browsers; give the gateway another server.port`
		return new CliError('usage', message, { cause: error })
	}
	const why = cause?.code === 'ECONNREFUSED' ? '' : ` (${cause?.code ?? cause?.message ?? String(error)})`
	const homeAdvice = home === undefined ? '' : `, or SVC_HOME to its home folder (now ${home})`
	const advice = `start one with "svc start", or set SVC_URL to its address${homeAdvice}`
	return new CliError('unavailable', `no gateway answers at ${url}${why}; ${advice}`, { cause: error })
}

/** The error for a server whose response is not one of a gateway. */
export function notAGateway(url: string): CliError {
	return new CliError('unavailable', `the server at ${url} is not a gateway; set SVC_URL to the address of the gateway`)
}

async function refusal(response: Response, connection: Connection): Promise<CliError> {
	const text = await textOf(response, connection)
	const answer = (parse(text, connection) ?? {}) as Partial<WireError> & { errors?: FieldError[] }
	const { message, code, errors = [] } = answer
	// Every error of a gateway has both.
	if (typeof message !== 'string' || typeof code !== 'string') return notAGateway(connection.url())
	const exit = exitOf(response.status)
	const fields = errors.filter((field) => !message.includes(field.message))
	const { withCommand } = await import('./hints.ts')
	const lines = [
		await withCommand(message, response.headers.get(HINT_HEADER)),
		...fields.map((field) => `  ${field.path}: ${field.message}`),
	]
	if (response.status === 401) lines.push('Store a token of this gateway with "svc login", or set SVC_TOKEN to one.')
	return new CliError(exit, lines.join('\n'), { code, errors })
}

/** The body as text. Throws as `bytesOf`. */
export async function textOf(response: Response, connection: Connection): Promise<string> {
	return new TextDecoder().decode(await bytesOf(response, connection, BODY_LIMIT))
}

/** Throws `unavailable` for a response that is cut off, or larger than any of a gateway. */
export async function bytesOf(response: Response, connection: Connection, limit = FILE_LIMIT): Promise<Uint8Array> {
	try {
		return await allBytes(response.body ?? [], limit, () => notAGateway(connection.url()))
	} catch (error) {
		if (error instanceof CliError) throw error
		if ((error as Error).name === 'AbortError') throw new CliError('interrupted', '', { cause: error })
		const message = `the gateway at ${connection.url()} closed the connection in the middle of its answer`
		throw new CliError('unavailable', message, { cause: error })
	}
}

/** Parses JSON. Throws `notAGateway` for any other text. */
export function parse(text: string, connection: Connection): unknown {
	try {
		return JSON.parse(text)
	} catch (error) {
		throw Object.assign(notAGateway(connection.url()), { cause: error })
	}
}
