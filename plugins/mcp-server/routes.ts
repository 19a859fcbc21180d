import type { Request, ResponseToolkit, Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { McpRequest, McpServerSettings } from './contract.ts'
import type { Sessions } from './sessions.ts'
import { stream } from './stream.ts'

const MCP_PATH = '/mcp'
/** A caller needs one of these scopes. Which of them it has determines what its session may do. */
const auth = { access: { scope: ['agents:read', 'runs:write', '*'] } }
const session = Joi.string().max(128).description('Id of the session, from the answer to `initialize`.')
const version = Joi.string().max(32).description('The negotiated revision of the protocol, such as 2025-11-25.')
const headers = { 'mcp-session-id': session, 'mcp-protocol-version': version }
const lastEventId = Joi.string().max(128).description('Resume the interrupted stream after this event.')
const common = { tags: ['api', 'mcp'], auth }
const EVENTS = 'text/event-stream'
const events = Joi.string().example(
	'id: 1\nevent: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"[]"}]}}\n\n',
)

const otherFailure = Joi.object({
	jsonrpc: Joi.valid('2.0').required(),
	id: Joi.alternatives(Joi.string(), Joi.number()).allow(null).required(),
	error: Joi.object({
		code: Joi.number().integer().required(),
		message: Joi.string().required(),
		data: Joi.any(),
	}).required(),
})
	.id('JsonRpcError')
	.description('An error of the protocol. Errors before it, such as a missing token, have the shape `Error`.')
	.example({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Bad Request: Server not initialized' } })

export function routes(server: Server, ctx: Context<McpServerSettings>, sessions: Sessions): void {
	const answer = async (method: McpRequest['method'], request: Request, h: ResponseToolkit) => {
		const { auth, payload, raw } = request
		refuseForeignOrigin(raw.req.headers, ctx.use('auth').cors_origins)
		const { response, closed } = await sessions.handle({
			method,
			headers: raw.req.headers,
			body: payload,
			credentials: auth.credentials,
		})
		const id = response.headers.get('mcp-session-id')
		if (response.body && response.headers.get('content-type') === EVENTS) {
			if (id !== null) raw.res.setHeader('mcp-session-id', id)
			const sent = stream(response.body, raw.res, ctx.config.stall_timeout_s * 1000)
			void sent.catch((error: unknown) => ctx.log.error({ err: error }, 'a stream broke')).finally(closed)
			return h.abandon
		}
		const text = await response.text().finally(closed)
		const made = text === '' ? h.response() : h.response(JSON.parse(text) as object)
		made.code(text === '' && response.status === 200 ? 204 : response.status)
		return id === null ? made : made.header('mcp-session-id', id)
	}

	server.route({
		method: 'POST',
		path: MCP_PATH,
		options: {
			...common,
			id: 'sendMcpMessage',
			description: 'Send a message of the Model Context Protocol (Streamable HTTP)',
			notes: [
				'One JSON-RPC 2.0 message. `initialize` opens a session, whose id is in the header `Mcp-Session-Id` of the answer and of every later request. A request is answered by a stream of Server-Sent Events that ends with its response; notifications and responses are answered with 202.',
				'Tools: `list_agents`, `run_agent`, `answer_question`, `get_run`, `list_runs`, `stop_run`, `stop_agent`, `search_memory`; a session has those that the scopes of its token allow. Resources: `svc://agents/{name}/history`, `svc://runs/{run_id}`. Prompts: the active skills of agents, `agent/skill`.',
				'A session belongs to the token that opened it. For other tokens, it does not exist. A session that has been idle for too long is closed: after a 404, send `initialize` again.',
			],
			validate: {
				headers: Joi.object(headers).unknown(),
				payload: Joi.object({
					jsonrpc: Joi.valid('2.0').required(),
					id: Joi.alternatives(Joi.string().max(256), Joi.number().integer()),
					method: Joi.string().max(128),
					params: Joi.object().unknown(),
					result: Joi.object().unknown(),
					error: Joi.object().unknown(),
				})
					.required()
					.example({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_agents', arguments: {} } })
					.prefs({ convert: false }),
			},
			plugins: {
				auth: { agents: 'checked' },
				openapi: { answers: { 200: { [EVENTS]: events }, 202: {} }, errors: [404, 406, 503], otherFailure },
			},
		},
		handler: (request, h) => answer('POST', request, h),
	})
	server.route({
		method: 'GET',
		path: MCP_PATH,
		options: {
			...common,
			id: 'openMcpStream',
			description: 'Open the stream of a session of the Model Context Protocol',
			notes:
				'Server-Sent Events from the server to the client, one stream a session. With `Last-Event-ID` an interrupted stream resumes, such as that of a call in progress, beginning with the missed events.',
			validate: { headers: Joi.object({ ...headers, 'last-event-id': lastEventId }).unknown() },
			plugins: {
				auth: { agents: 'checked' },
				openapi: { answers: { 200: { [EVENTS]: events } }, errors: [404, 406, 409], otherFailure },
			},
		},
		handler: (request, h) => {
			if (request.method === 'head') throw new Fault('method_not_allowed', 'send GET, POST or DELETE')
			return answer('GET', request, h)
		},
	})
	server.route({
		method: 'DELETE',
		path: MCP_PATH,
		options: {
			...common,
			id: 'endMcpSession',
			description: 'End a session of the Model Context Protocol',
			notes: 'Runs that it started continue.',
			validate: { headers: Joi.object(headers).unknown() },
			plugins: { auth: { agents: 'checked' }, openapi: { errors: [404], otherFailure } },
		},
		handler: (request, h) => answer('DELETE', request, h),
	})
}

/**
 * Throws `forbidden` if a web page sent the request and its origin is neither the gateway's own nor listed in
 * `server.cors_origins`. The protocol requires this check for every caller (revision 2025-11-25, Streamable HTTP, security).
 * Callers without a token have already passed the stricter check of the auth plugin.
 */
function refuseForeignOrigin(
	{ origin, host }: { origin?: string | undefined; host?: string | undefined },
	allowed: readonly string[],
): void {
	if (origin === undefined || isSameHost(origin, host ?? '') || allowed.includes(origin)) return
	throw new Fault(
		'forbidden',
		'the Origin is not allowed; add it to server.cors_origins if a web page of another host should use this server',
	)
}

function isSameHost(origin: string, host: string): boolean {
	const url = URL.parse(origin)
	if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return false
	// A proxy in front of the gateway may use https, which has another default port.
	return URL.parse(`${url.protocol}//${host}`)?.host === url.host
}
