/** The official client against a gateway, and plain HTTP for what it would never send. */
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

const WAIT_LIMIT_MS = 60_000

export const config = 'plugins: {mcp-server: true}\n'

export interface ClientOptions {
	token?: string
	/** The person at the client. */
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
	/** Calls a tool; throws where the protocol says error. */
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

export async function makeToken(gateway: TestGateway, ...scopes: string[]): Promise<{ id: string; token: string }> {
	return (await gateway.request('POST', '/v1/auth/tokens', { body: { scopes } })).body
}

/** A session over plain HTTP. */
export interface RawSession {
	id: string
	/** Sends one message, and waits for the whole of its answer. */
	post(message: unknown, headers?: Record<string, string>): Promise<Reply<Answer>>
	/** Sends a request and answers with the first line of data of its stream. */
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
	const own: RawSession = {
		id,
		post: (message, headers) =>
			post(gateway, message, {
				...(token !== undefined && { token }),
				headers: { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25', ...headers },
			}),
		async request(method, params = {}, request = 1) {
			const reply = await own.post({ jsonrpc: '2.0', id: request, method, params })
			return typeof reply.body === 'string' ? messagesIn(reply.body).at(-1) : reply.body
		},
	}
	return own
}

/** Of a stream's text. */
function messagesIn(text: string): Answer[] {
	return [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data ?? '') as Answer)
}

/** Waits for a condition. */
export async function until(condition: () => unknown, what: string): Promise<void> {
	for (const end = Date.now() + WAIT_LIMIT_MS; Date.now() < end;) {
		if (await condition()) return
		await new Promise((resolve) => setTimeout(resolve, 25))
	}
	throw new Error(`it did not come to that: ${what}`)
}

/** A stream that is being read. */
export interface RawStream {
	status: number
	text(): string
	/** Ids of its events so far. */
	ids(): string[]
	messages(): Answer[]
	/** Settles when it ends; false where it was cut off in the middle. */
	ended: Promise<boolean>
	/** Goes away without a word. */
	leave(): void
}

/** Sends a message, or opens the session's own stream where there is none. */
export async function openStream(
	{ url, id, token }: { url: string; id: string; token?: string },
	message?: unknown,
	headers: Record<string, string> = {},
): Promise<RawStream> {
	const left = new AbortController()
	const response = await fetch(`${url}/mcp`, {
		method: message === undefined ? 'GET' : 'POST',
		signal: left.signal,
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
		ids: () => [...text.matchAll(/^id: (.+)$/gm)].map(([, one]) => one ?? ''),
		messages: () => messagesIn(text),
		ended: read(),
		leave: () => left.abort(),
	}
}
