/**
 * One connection to an MCP server, by the official SDK. Only this file uses the SDK. It is loaded with the first server, since
 * it takes 150 ms and 30 MB. A client serves one connection; a new connection needs a new client.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport, SseError } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport, StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
	CreateMessageRequestSchema,
	ElicitRequestSchema,
	ErrorCode,
	ListRootsRequestSchema,
	McpError,
	ResultSchema,
	ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import { isFault, messageOf } from '../../core/errors.ts'
import { within } from '../../core/util/deadline.ts'
import { during } from '../../core/util/during.ts'
import { onAbort } from '../../core/util/on-abort.ts'
import type { Elicited, FormRequest, UrlRequest } from './elicitation.ts'
import type { BoundedFetch } from './http.ts'
import { otherRevision } from './revision.ts'
import type { Sampled, SamplingRequest } from './sampling.ts'
import { stdioTransport } from './stdio.ts'
import type { ServerProcess } from './processes.ts'
import type { Tail } from './tail.ts'

export type Target =
	| { kind: 'stdio'; process: ServerProcess; said: Tail }
	/** `sse` tries Streamable HTTP first, and the older transport if the server does not support it. */
	| { kind: 'http' | 'sse'; url: URL; fetch: BoundedFetch }

export interface Hooks {
	/** The gateway's version, which is sent to the server. */
	version: string
	toolsChanged(): void
	elicit(request: FormRequest | UrlRequest): Promise<Elicited>
	/** Lets a model answer. The server gets the messages of its Faults. Absent: the server is not allowed to ask. */
	sample?(request: SamplingRequest, signal: AbortSignal): Promise<Sampled>
	/** `file://` addresses. Absent: the server gets no roots. */
	roots?: readonly string[]
	/** An error on the connection, which may or may not have ended it. */
	trouble(error: Error): void
	/** The connection is over. Called once. */
	closed(): void
}

export interface Session {
	readonly server: { name: string; version: string; title?: string }
	readonly protocol_version: string
	readonly instructions: string | null
	/** The transport, for people. */
	readonly via: string
	/** Every tool that the server lists, unchecked. */
	listTools(signal: AbortSignal): Promise<unknown[]>
	/** The result as the server sent it, unchecked. `signal` cancels the call at the server too. */
	callTool(name: string, args: Record<string, unknown>, options: CallOptions): Promise<Record<string, unknown>>
	/** Settles if the server responds, whatever its answer. */
	ping(): Promise<void>
	close(): Promise<void>
}

export interface CallOptions {
	signal: AbortSignal
	onprogress(): void
}

const CONNECT_LIMIT_MS = { stdio: 60_000, http: 20_000, sse: 20_000 }
const LIST_LIMIT_MS = 20_000
const PING_LIMIT_MS = 10_000
const END_SESSION_LIMIT_MS = 1_000
/** Far more than is shown: the text is redacted before it is cut. */
const MESSAGE_LIMIT = 8_192
const NAME_LIMIT = 8_192
const INSTRUCTIONS_LIMIT = 64 * 1024
/** The protocol's code for a refused request to a model. */
const REFUSED = -1
/** The longest timer of the SDK; calls have their own deadlines. */
const NEVER_MS = 2 ** 31 - 1
const PAGES = 50
const TOOLS = 1_000

/** Throws the error of the transport, the server or the signal. */
export async function openSession(target: Target, hooks: Hooks, signal: AbortSignal): Promise<Session> {
	if (target.kind === 'stdio')
		return connect(stdioTransport(target.process, target.said), 'stdio', 'stdio', hooks, signal)
	const { url, fetch } = target
	try {
		const transport = new StreamableHTTPClientTransport(url, { fetch })
		// The SDK reports a broken stream, and leaves the request that it would have answered pending.
		fetch.onbroken = (body, error) => {
			const id = idOfRequest(body)
			if (id === undefined) return
			const message = messageOf(error).slice(0, MESSAGE_LIMIT)
			transport.onmessage?.({ jsonrpc: '2.0', id, error: { code: ErrorCode.ConnectionClosed, message } })
		}
		return await connect(transport as Transport, target.kind, 'Streamable HTTP', hooks, signal)
	} catch (error) {
		if (signal.aborted || !knowsNoStreamableHttp(error)) throw error
		if (target.kind === 'http') throw isPage(error) ? noStreamableHttp(error) : error
		try {
			return await connect(new SSEClientTransport(url, { fetch }), 'sse', 'SSE', hooks, signal)
		} catch (second) {
			throw isNotMcp(second) ? noServer(error, second) : second
		}
	}
}

/** The server answered the request for an event stream with something else. */
function isNotMcp(error: unknown): error is SseError {
	return error instanceof SseError && [200, 404, 405].includes(error.code ?? 0)
}

/** Such as a web page, or the address of a server without its path. */
function noServer(posted: unknown, got: SseError): Error {
	const status = statusOfError(posted)
	const answers = `it answers POST with ${status}, and GET with ${got.code}${got.code === 200 ? ' but no event stream' : ''}`
	return answered(status, `there is no MCP server at this address: ${answers}`)
}

/** The server answered with a page of HTML, of which only the status tells something. */
function isPage(error: unknown): boolean {
	return /<(?:!doctype )?html/i.test(messageOf(error))
}

function noStreamableHttp(posted: unknown): Error {
	const status = statusOfError(posted)
	const answers = `it answers POST with ${status} and a page`
	const advice = 'for a server of the older HTTP+SSE, set the transport to "sse"'
	return answered(status, `there is no MCP server over Streamable HTTP at this address: ${answers}; ${advice}`)
}

/** Without the prefix that the SDK's class puts in front of its message. */
function answered(status: number | undefined, message: string): Error {
	return Object.assign(new StreamableHTTPError(status, message), { message })
}

/** The status of the server's answer, if that caused the error. */
export function statusOfError(error: unknown): number | undefined {
	if (error instanceof StreamableHTTPError || error instanceof SseError) return error.code
	return undefined
}

/** Is it an answer of the server, which shows that the server is there? */
export function isAnswer(error: unknown): error is McpError {
	return (
		error instanceof McpError && error.code !== ErrorCode.ConnectionClosed && error.code !== ErrorCode.RequestTimeout
	)
}

/** The addresses that a person must visit before the call can succeed, if the server names any. */
export function requiredVisits(error: unknown): { message: string; url: string }[] {
	if (!(error instanceof McpError) || error.code !== ErrorCode.UrlElicitationRequired) return []
	const { elicitations } = (error.data ?? {}) as { elicitations?: unknown }
	if (!Array.isArray(elicitations)) return []
	return elicitations.flatMap((one: { message?: unknown; url?: unknown } | null) =>
		one ? { message: String(one.message), url: String(one.url) } : [],
	)
}

async function connect(
	transport: Transport,
	kind: Target['kind'],
	via: string,
	hooks: Hooks,
	signal: AbortSignal,
): Promise<Session> {
	const info = { name: 'svc-gateway', title: 'Agent Gateway', version: hooks.version }
	const client = new Client(info, {
		capabilities: {
			elicitation: { form: { applyDefaults: true }, url: {} },
			...(hooks.sample && { sampling: {} }),
			...(hooks.roots && { roots: {} }),
		},
		// The SDK would compile the schemas of servers into code.
		jsonSchemaValidator: {
			getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
		},
	})
	let version = ''
	const setVersion = transport.setProtocolVersion?.bind(transport)
	transport.setProtocolVersion = (one) => {
		version = one
		setVersion?.(one)
	}
	let isOpen = false
	client.onerror = (error) => {
		hooks.trouble(error)
		// An event source would reconnect automatically, to a server that no longer knows this session.
		if (isOpen && error instanceof SseError) void client.close()
	}
	client.onclose = () => {
		if (isOpen) hooks.closed()
		isOpen = false
	}
	client.setNotificationHandler(ToolListChangedNotificationSchema, () => hooks.toolsChanged())
	client.setRequestHandler(
		ElicitRequestSchema,
		({ params }) => hooks.elicit(params as FormRequest | UrlRequest) as Promise<ElicitResult>,
	)

	answerAllowances(client, hooks)

	const stay = onAbort(signal, () => void client.close())
	// Each request gets a signal of its own (`during`): the SDK never removes its listener, and would cancel old requests.
	try {
		await during(signal, (own) => client.connect(transport, { timeout: CONNECT_LIMIT_MS[kind], signal: own }))
	} catch (error) {
		await client.close()
		await transport.close() // in case the client never took it over
		if (isLate(error, CONNECT_LIMIT_MS[kind])) throw new Error(noAnswer(kind), { cause: error })
		throw otherRevision(error) ?? inWords(error)
	} finally {
		stay()
	}
	isOpen = true
	const { name, version: serverVersion, title } = client.getServerVersion() ?? { name: 'unnamed', version: '' }

	return {
		server: { name: short(name), version: short(serverVersion), ...(title !== undefined && { title: short(title) }) },
		protocol_version: version,
		instructions: client.getInstructions()?.slice(0, INSTRUCTIONS_LIMIT) ?? null,
		via,
		async listTools(stop) {
			if (!client.getServerCapabilities()?.tools) return []
			const tools: unknown[] = []
			const seen = new Set<string>()
			let cursor: string | undefined
			for (let page = 0; page < PAGES && tools.length < TOOLS; page++) {
				const params = cursor === undefined ? {} : { cursor }
				const result = await during(stop, (own) =>
					client.request({ method: 'tools/list', params }, ResultSchema, { timeout: LIST_LIMIT_MS, signal: own }),
				)
				if (!Array.isArray(result.tools)) throw new Error('its list of tools is not an array')
				tools.push(...(result.tools as unknown[]))
				const next = result.nextCursor
				if (typeof next !== 'string' || next === '' || seen.has(next)) break
				seen.add((cursor = next))
			}
			return tools.slice(0, TOOLS)
		},
		callTool: (tool, args, { signal: stop, onprogress }) =>
			during(stop, (own) =>
				client.request({ method: 'tools/call', params: { name: tool, arguments: args } }, ResultSchema, {
					timeout: NEVER_MS,
					signal: own,
					onprogress,
				}),
			),
		async ping() {
			try {
				await client.request({ method: 'ping' }, ResultSchema, { timeout: PING_LIMIT_MS })
			} catch (error) {
				if (!isAnswer(error)) throw error
			}
		},
		async close() {
			if (transport instanceof StreamableHTTPClientTransport) await endSession(transport)
			await client.close()
		},
	}
}

/** What a server may ask for if the operator allowed it. */
function answerAllowances(client: Client, { sample, roots }: Hooks): void {
	if (sample)
		client.setRequestHandler(CreateMessageRequestSchema, async ({ params }, extra) => {
			try {
				return await sample(params, extra.signal)
			} catch (error) {
				const code = isFault(error, 'invalid_request') ? ErrorCode.InvalidParams : REFUSED
				throw isFault(error) ? new McpError(code, error.message) : error
			}
		})
	if (roots) client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: roots.map((uri) => ({ uri })) }))
	client.fallbackRequestHandler = async ({ method }) => {
		const field = { 'sampling/createMessage': 'sampling', 'roots/list': 'roots' }[method]
		const why = field === undefined ? '' : `; the operator of the gateway has not allowed it for this server (${field})`
		throw new McpError(ErrorCode.MethodNotFound, `${method} is not supported${why}`)
	}
}

/** Lets the server release the session. */
async function endSession(transport: StreamableHTTPClientTransport): Promise<void> {
	await within(END_SESSION_LIMIT_MS, 'the server', transport.terminateSession()).catch(() => {})
}

/** Answers of servers that have only the older transport. */
function knowsNoStreamableHttp(error: unknown): boolean {
	const status = statusOfError(error) ?? 0
	return status >= 400 && status < 500 && ![401, 403, 407, 408, 429].includes(status)
}

function noAnswer(kind: Target['kind']): string {
	const late = `it did not answer within ${CONNECT_LIMIT_MS[kind] / 1000} s`
	if (kind !== 'stdio') return late
	return `${late}; its standard error output (stderr) may show why`
}

/** The SDK's own timeout, recognized by its data; an abort has the same code. */
function isLate(error: unknown, limitMs: number): boolean {
	if (!(error instanceof McpError) || error.code !== ErrorCode.RequestTimeout) return false
	return (error.data as { timeout?: unknown } | undefined)?.timeout === limitMs
}

/** The SDK reports an invalid answer as a JSON list of its problems. */
function inWords(error: unknown): unknown {
	const { issues } = Object(error) as { issues?: { path: PropertyKey[]; message: string }[] }
	if (!Array.isArray(issues)) return error
	const problems = issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
	return new Error(`its answer to "initialize" is not valid: ${problems}`, { cause: error })
}

function idOfRequest(body: unknown): string | number | undefined {
	if (typeof body !== 'string') return undefined // a stream opened by GET answers no request
	const { id } = JSON.parse(body) as { id?: string | number }
	return id
}

function short(text: string): string {
	return text.slice(0, NAME_LIMIT)
}
