/** The official client, and plain HTTP for requests that it never sends. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import type {
	JsonSchemaType,
	JsonSchemaValidator,
	jsonSchemaValidator as Validators,
} from '@modelcontextprotocol/sdk/validation/types.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import type { Answer, Reply, TestGateway } from '../../support/gateway.ts'
import { send } from '../../support/gateway.ts'

export const config = 'plugins: {mcp-server: true}\n'

export interface ClientOptions {
	token?: string
	/** Answers for the person at the client. */
	elicit?(params: ElicitRequest['params'], signal: AbortSignal): Promise<ElicitResult> | ElicitResult
}

const ajv = new AjvJsonSchemaValidator()
const validators = new Map<string, JsonSchemaValidator<unknown>>()
/** Compiles a schema once for all clients, since the same tools are listed to each of them. */
const jsonSchemaValidator: Validators = {
	getValidator<T>(schema: JsonSchemaType): JsonSchemaValidator<T> {
		const text = JSON.stringify(schema)
		const validator = validators.get(text) ?? ajv.getValidator(schema)
		validators.set(text, validator)
		return validator as JsonSchemaValidator<T>
	},
}

export interface TestClient {
	client: Client
	transport: StreamableHTTPClientTransport
	/** Calls a tool. Throws for an error of the protocol. */
	call(name: string, args?: object, options?: CallOptions): Promise<Answer>
}

export interface CallOptions {
	signal?: AbortSignal
	onprogress?: (progress: { progress: number; message?: string | undefined }) => void
}

export async function connect(
	t: Test,
	gateway: Pick<TestGateway, 'url'>,
	{ token, elicit }: ClientOptions = {},
): Promise<TestClient> {
	const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
	const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers } })
	const client = new Client(
		{ name: 'test', version: '1' },
		{ capabilities: elicit ? { elicitation: { form: {} } } : {}, jsonSchemaValidator },
	)
	if (elicit) client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => elicit(params, signal))
	t.teardown(() => client.close())
	await client.connect(transport as Transport)
	await client.listTools() // from now on it checks results by the schemas of their tools
	return {
		client,
		transport,
		call: (name, args = {}, options = {}) =>
			client.callTool({ name, arguments: args as Record<string, unknown> }, undefined, options),
	}
}

/** A session over plain HTTP. */
export interface RawSession {
	id: string
	/** Sends one message, and waits for its complete response. */
	post(message: unknown, headers?: Record<string, string>): Promise<Reply<Answer>>
	/** Sends a request, and returns the last message of its response. */
	request(method: string, params?: object, id?: number): Promise<Answer>
}

const accept = 'application/json, text/event-stream'
export const initialize = {
	jsonrpc: '2.0',
	id: 0,
	method: 'initialize',
	params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}

export function post(
	gateway: Pick<TestGateway, 'url'>,
	body: unknown,
	{ token, headers }: { token?: string; headers?: Record<string, string> } = {},
): Promise<Reply<Answer>> {
	return send(`${gateway.url}/mcp`, 'POST', {
		body,
		...(token !== undefined && { token }),
		headers: { accept, ...headers },
	})
}

export async function openRaw(gateway: Pick<TestGateway, 'url'>, token?: string): Promise<RawSession> {
	const opened = await post(gateway, initialize, token === undefined ? {} : { token })
	const id = opened.headers.get('mcp-session-id')
	if (id === null) throw new Error(`no session: ${opened.status} ${JSON.stringify(opened.body)}`)
	const session: RawSession = {
		id,
		post: (message, headers) =>
			post(gateway, message, {
				...(token !== undefined && { token }),
				headers: { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25', ...headers },
			}),
		async request(method, params = {}, request = 1) {
			const reply = await session.post({ jsonrpc: '2.0', id: request, method, params })
			return typeof reply.body === 'string' ? messagesIn(reply.body).at(-1) : reply.body
		},
	}
	return session
}

/** The messages in the text of a stream. */
function messagesIn(text: string): Answer[] {
	return [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data ?? '') as Answer)
}

/** A stream that is being read. */
export interface RawStream {
	status: number
	text(): string
	/** Ids of its events so far. */
	ids(): string[]
	messages(): Answer[]
	/** Settles when it ends; false if it was cut off. */
	ended: Promise<boolean>
	/** Disconnects. */
	leave(): void
}

/** Sends a message and opens the stream of its response. Without a message, opens the session's own stream. */
export async function openStream(
	{ url, id, token }: { url: string; id: string; token?: string },
	message?: unknown,
	headers: Record<string, string> = {},
): Promise<RawStream> {
	const connection = new AbortController()
	const response = await fetch(`${url}/mcp`, {
		method: message === undefined ? 'GET' : 'POST',
		signal: connection.signal,
		headers: {
			accept,
			'mcp-session-id': id,
			'mcp-protocol-version': '2025-11-25',
			...(message !== undefined && { 'content-type': 'application/json' }),
			...(token !== undefined && { authorization: `Bearer ${token}` }),
			...headers,
		},
		...(message !== undefined && { body: JSON.stringify(message) }),
	})
	let text = ''
	const read = async (): Promise<boolean> => {
		try {
			for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part
			return true
		} catch {
			return false
		}
	}
	return {
		status: response.status,
		text: () => text,
		ids: () => [...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => id ?? ''),
		messages: () => messagesIn(text),
		ended: read(),
		leave: () => connection.abort(),
	}
}
