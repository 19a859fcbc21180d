/**
 * One connection to an MCP server, by the client of the official SDK. This file is loaded with the first server, since the SDK
 * takes 150 ms and 30 MB. A client serves one connection; a new connection needs a new client.
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
import type {
	CreateMessageRequestParams,
	CreateMessageResult,
	ElicitRequestParams,
	ElicitRequestURLParams,
	ElicitResult,
} from '@modelcontextprotocol/sdk/types.js'
import { isFault, messageOf } from '../../core/errors.ts'
import { within } from '../../core/util/deadline.ts'
import { during } from '../../core/util/during.ts'
import { isObject } from '../../core/util/is-object.ts'
import { onAbort } from '../../core/util/on-abort.ts'
import { TIMER_LIMIT_MS } from '../../core/util/timer-limit.ts'
import { noValidator } from '../shared/no-validator.ts'
import type { BoundedFetch } from './http.ts'
import { otherRevision } from './revision.ts'
import { stdioTransport } from './stdio.ts'
import type { ServerProcess } from './processes.ts'
import type { Tail } from './tail.ts'

export type Target =
	| { kind: 'stdio'; process: ServerProcess; stderrTail: Tail }
	/** `sse` tries Streamable HTTP first, and the older transport if the server does not support it. */
	| { kind: 'http' | 'sse'; url: URL; fetch: BoundedFetch }

export interface Hooks {
	/** The gateway's version, which is sent to the server. */
	version: string
	toolsChanged(): void
	elicit(request: ElicitRequestParams): Promise<ElicitResult>
	/** Lets a model answer. The server gets the messages of Faults. Absent: sampling is not allowed. */
	sample?(request: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult>
	/** `file://` addresses. Absent: the server gets no roots. */
	roots?: readonly string[]
	/** An error on the connection, which may or may not have ended it. */
	onError(error: Error): void
	/** The connection has ended. Called once. */
	onClose(): void
}

export interface Session {
	readonly server: { name: string; version: string; title?: string }
	readonly protocol_version: string
	readonly instructions: string | null
	/** The name of the transport, for people. */
	readonly via: string
	/** The tools that the server lists, not validated; at most 1,000. */
	listTools(signal: AbortSignal): Promise<unknown[]>
	/** Returns the server's result, not validated. `signal` cancels the call at the server too. */
	callTool(
		name: string,
		args: Record<string, unknown>,
		options: { signal: AbortSignal; onprogress(): void },
	): Promise<Record<string, unknown>>
	/** Settles if the server responds, even with an error. */
	ping(): Promise<void>
	close(): Promise<void>
}

const CONNECT_LIMIT_MS = { stdio: 60_000, http: 20_000, sse: 20_000 }
const LIST_LIMIT_MS = 20_000
const PING_LIMIT_MS = 10_000
const END_SESSION_LIMIT_MS = 1_000
/** Far more than is shown: the text is redacted before it is cut. */
const MESSAGE_LIMIT = 8_192
const NAME_LIMIT = 8_192
const INSTRUCTIONS_LIMIT = 64 * 1024
/** The protocol's error code for a refused sampling request. */
const REFUSED = -1
const PAGES = 50
const TOOLS = 1_000

/** Throws the error of the transport, the server or the signal. */
export async function openSession(target: Target, hooks: Hooks, signal: AbortSignal): Promise<Session> {
	if (target.kind === 'stdio')
		return connect(stdioTransport(target.process, target.stderrTail), 'stdio', 'stdio', hooks, signal)
	const { url, fetch } = target
	try {
		const transport = new StreamableHTTPClientTransport(url, { fetch })
		// After a broken stream, the SDK leaves the request that the stream should answer pending forever.
		fetch.onbroken = (body, error) => {
			const id = idOfRequest(body)
			if (id === undefined) return
			const message = messageOf(error).slice(0, MESSAGE_LIMIT)
			transport.onmessage?.({ jsonrpc: '2.0', id, error: { code: ErrorCode.ConnectionClosed, message } })
		}
		return await connect(transport as Transport, target.kind, 'Streamable HTTP', hooks, signal)
	} catch (error) {
		if (signal.aborted || !lacksStreamableHttp(error)) throw error
		if (target.kind === 'http') throw isPage(error) ? noStreamableHttp(error) : error
		try {
			return await connect(new SSEClientTransport(url, { fetch }), 'sse', 'SSE', hooks, signal)
		} catch (second) {
			throw isNotMcp(second) ? noServer(error, second) : second
		}
	}
}

/** Whether the response to the request for an event stream shows that there is no MCP server. */
function isNotMcp(error: unknown): error is SseError {
	return error instanceof SseError && [200, 404, 405].includes(error.code ?? 0)
}

/** For example, the address is that of a web page, or lacks the server's path. */
function noServer(postError: unknown, getError: SseError): Error {
	const status = statusOfError(postError)
	const answers = `it answers POST with ${status}, and GET with ${getError.code}${getError.code === 200 ? ' but no event stream' : ''}`
	return errorWithStatus(status, `there is no MCP server at this address: ${answers}`)
}

/** The server answered with an HTML page, whose text is of no use in an error message. */
function isPage(error: unknown): boolean {
	return /<(?:!doctype )?html/i.test(messageOf(error))
}

function noStreamableHttp(error: unknown): Error {
	const status = statusOfError(error)
	const answers = `it answers POST with ${status} and a page`
	const advice = 'for a server with the older HTTP+SSE, set the transport to "sse"'
	return errorWithStatus(status, `there is no MCP server over Streamable HTTP at this address: ${answers}; ${advice}`)
}

/** Sets the message again, to remove the prefix that the SDK's class adds. */
function errorWithStatus(status: number | undefined, message: string): Error {
	return Object.assign(new StreamableHTTPError(status, message), { message })
}

/** The HTTP status of the response that caused the error. */
export function statusOfError(error: unknown): number | undefined {
	if (error instanceof StreamableHTTPError || error instanceof SseError) return error.code
	return undefined
}

/** Whether the error is a JSON-RPC error from the server, which shows that the server responds. */
export function isAnswer(error: unknown): error is McpError {
	return (
		error instanceof McpError && error.code !== ErrorCode.ConnectionClosed && error.code !== ErrorCode.RequestTimeout
	)
}

/** The addresses that a person must visit before the call can succeed; not validated. */
export function requiredVisits(error: unknown): ElicitRequestURLParams[] {
	if (!(error instanceof McpError) || error.code !== ErrorCode.UrlElicitationRequired) return []
	const { elicitations } = (error.data ?? {}) as { elicitations?: unknown }
	if (!Array.isArray(elicitations)) return []
	return elicitations.filter(isObject).map(({ message, url, elicitationId }) => ({
		mode: 'url',
		message: String(message),
		url: String(url),
		elicitationId: String(elicitationId),
	}))
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
		jsonSchemaValidator: noValidator,
	})
	let version = ''
	const setVersion = transport.setProtocolVersion?.bind(transport)
	transport.setProtocolVersion = (one) => {
		version = one
		setVersion?.(one)
	}
	let isOpen = false
	client.onerror = (error) => {
		hooks.onError(error)
		// The SDK's event source would reconnect automatically, but this session is lost.
		if (isOpen && error instanceof SseError) void client.close()
	}
	client.onclose = () => {
		if (isOpen) hooks.onClose()
		isOpen = false
	}
	client.setNotificationHandler(ToolListChangedNotificationSchema, () => hooks.toolsChanged())
	client.setRequestHandler(ElicitRequestSchema, ({ params }) => hooks.elicit(params))
	handleServerRequests(client, hooks)

	const removeListener = onAbort(signal, () => void client.close())
	// Each request gets its own signal (`during`): the SDK never removes its listeners, and would cancel old requests.
	try {
		await during(signal, (own) => client.connect(transport, { timeout: CONNECT_LIMIT_MS[kind], signal: own }))
	} catch (error) {
		await client.close()
		await transport.close() // if the client does not own it yet
		if (isTimeout(error, CONNECT_LIMIT_MS[kind])) throw new Error(timeoutMessage(kind), { cause: error })
		throw otherRevision(error) ?? readable(error)
	} finally {
		removeListener()
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
					timeout: TIMER_LIMIT_MS, // the SDK requires a timeout; calls have their own deadlines
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
			if (transport instanceof StreamableHTTPClientTransport)
				await within(END_SESSION_LIMIT_MS, 'the server', transport.terminateSession()).catch(() => {})
			await client.close()
		},
	}
}

/** Answers the server's requests for sampling and roots, if the operator allowed them. */
function handleServerRequests(client: Client, { sample, roots }: Hooks): void {
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

/** Whether the server may support only the older transport. */
function lacksStreamableHttp(error: unknown): boolean {
	const status = statusOfError(error) ?? 0
	return status >= 400 && status < 500 && ![401, 403, 407, 408, 429].includes(status)
}

function timeoutMessage(kind: Target['kind']): string {
	const message = `it did not answer within ${CONNECT_LIMIT_MS[kind] / 1000} s`
	if (kind !== 'stdio') return message
	return `${message}; its standard error output (stderr) may show why`
}

/** Recognizes the SDK's own timeout by its data: an abort has the same code. */
function isTimeout(error: unknown, limitMs: number): boolean {
	if (!(error instanceof McpError) || error.code !== ErrorCode.RequestTimeout) return false
	return (error.data as { timeout?: unknown } | undefined)?.timeout === limitMs
}

/** The SDK reports an invalid answer as a JSON list of problems. Joins them to a readable message. */
function readable(error: unknown): unknown {
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
