import { randomBytes } from 'node:crypto'
import type { Request, ResponseObject, Server } from '@hapi/hapi'
import { Joi } from '../../../core/util/lazy-joi.ts'
import { isFault } from '../../../core/errors.ts'
import { cookieOf } from '../../shared/cookie.ts'
import { pageAnswers } from '../../shared/plain-page.ts'
import { scoped } from '../../shared/scopes.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { McpServers, McpSettings } from '../contract.ts'
import { paramsOfServer, view } from '../schemas.ts'
import type { ServerParams } from '../schemas.ts'
import { CALLBACK, CLIENT_DOCUMENT, clientDocument, clientMetadata, redirectAddress } from './client.ts'

const tags = ['api', 'mcp']
const COOKIE = 'svc-mcp-login'
const COOKIE_SECONDS = 600
/** Limit of characters of the pasted address, which contains the code. */
const ADDRESS_LIMIT = 16_384

export function loginRoutes(server: Server, ctx: Context<McpSettings>, servers: McpServers): void {
	const agentOf = ({ id }: Pick<ServerParams, 'id'>): Promise<AgentRef> => ctx.use('agents').get(id)

	server.route<{ Params: ServerParams }>({
		method: 'POST',
		path: '/v1/agents/{id}/mcp/{mcp_id}/login',
		options: {
			id: 'loginToMcpServer',
			description: 'Start a login to an MCP server',
			notes: [
				'Open `url` in a browser. After the login there, the browser is sent to `/v1/mcp/callback` of this gateway (below `server.public_url`), which completes the login. If the browser cannot reach the gateway, `POST …/login/complete` accepts the address to which the browser was redirected.',
				'It is valid once, for 10 minutes, and replaces an earlier one for the same server. 409 for a server that needs no login by a person.',
			],
			tags,
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409, 502] } },
			validate: { params: paramsOfServer },
			response: {
				status: {
					200: Joi.object({
						url: Joi.string().required().example('https://login.example.com/authorize?client_id=gateway'),
						expires_at: Joi.string().isoDate().required(),
					}).id('McpLoginStarted'),
				},
			},
		},
		handler: async (request, h) => {
			const browser = isOfThisOrigin(request, ctx) ? randomBytes(32).toString('base64url') : null
			const agent = await agentOf(request.params)
			const started = h.response(await servers.login(agent, request.params.mcp_id, browser))
			return browser === null ? started : withCookie(started, browser, ctx)
		},
	})
	server.route<{ Params: ServerParams; Payload: { redirect_url: string } }>({
		method: 'POST',
		path: '/v1/agents/{id}/mcp/{mcp_id}/login/complete',
		options: {
			id: 'completeMcpLogin',
			description: 'Complete a login to an MCP server with the address that the browser was sent to',
			notes: 'Waits up to 5 s for the connection.',
			tags,
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [502] } },
			validate: {
				params: paramsOfServer,
				payload: Joi.object({
					redirect_url: Joi.string()
						.max(ADDRESS_LIMIT)
						.required()
						.custom((text: string, helpers) =>
							URL.canParse(text) ? text : helpers.message({ custom: '{#label} must be the complete address' }),
						)
						.description('The complete address, with `code` and `state`.')
						.example('http://127.0.0.1:3000/v1/mcp/callback?code=SplxlOBeZQQYbYS6WxSbIA&state=af0ifjsldkj'),
				}).required(),
			},
			response: { status: { 200: view } },
		},
		handler: async (request) => {
			const agent = await agentOf(request.params)
			const returned = new URL(request.payload.redirect_url)
			return (await servers.completeLogin(returned, undefined, { agent, id: request.params.mcp_id })).server
		},
	})
	server.route<{ Params: ServerParams }>({
		method: 'POST',
		path: '/v1/agents/{id}/mcp/{mcp_id}/logout',
		options: {
			id: 'logoutOfMcpServer',
			description: 'Sign out of an MCP server',
			notes:
				'Revokes the tokens, if the authorization server supports that, deletes them, and reconnects without them.',
			tags,
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: { params: paramsOfServer },
			response: { status: { 200: view } },
		},
		handler: async (request) => servers.logout(await agentOf(request.params), request.params.mcp_id),
	})
	server.route({
		method: 'GET',
		path: CALLBACK,
		options: {
			id: 'endMcpLogin',
			description: 'Redirect address of logins to MCP servers',
			notes: 'For browsers: shows a page. Public, since `state` proves that the login was started by this gateway.',
			tags,
			auth: false,
			plugins: { openapi: { answers: pageAnswers(200, 400, 403, 502) } },
		},
		handler: async (request, h) => {
			try {
				const done = await servers.completeLogin(request.url, cookieOf(request.raw.req, COOKIE))
				const text = `The agent ${done.agent} can use the MCP server "${done.server.name}" now. You can close this page.`
				return ctx.use('auth').loginPage(h, 200, { title: 'Signed in', text })
			} catch (error) {
				if (!isFault(error)) throw error
				const code = isFault(error, 'invalid_request') ? 400 : isFault(error, 'forbidden') ? 403 : 502
				return ctx.use('auth').loginPage(h, code, { title: 'Not signed in', text: error.message })
			}
		},
	})
	server.route({
		method: 'GET',
		path: CLIENT_DOCUMENT,
		options: {
			id: 'getMcpClientDocument',
			description: "The gateway's client ID metadata document",
			notes:
				'Describes the gateway to authorization servers, with this address as its client id. 404 without a `server.public_url` that begins with https.',
			tags,
			auth: false,
			plugins: { openapi: { errors: [404] } },
			response: {
				status: {
					200: Joi.object()
						.unknown()
						.id('McpClientDocument')
						.example({
							client_id: `https://gateway.example.com${CLIENT_DOCUMENT}`,
							...clientMetadata(`https://gateway.example.com${CALLBACK}`),
						}),
				},
			},
		},
		handler: () => {
			const client_id = clientDocument(ctx.gateway)
			if (client_id === null)
				throw ctx.fault('not_found', 'this document needs a server.public_url that begins with https')
			return { client_id, ...clientMetadata(redirectAddress(ctx.gateway)) }
		},
	})
}

/** Whether a page of the gateway sent the request, and the redirect address has the same host, so that it gets the cookie. */
function isOfThisOrigin(
	{ headers, info }: Pick<Request, 'headers' | 'info'>,
	{ gateway }: Context<McpSettings>,
): boolean {
	return headers['sec-fetch-site'] === 'same-origin' && new URL(redirectAddress(gateway)).host === info.host
}

/** `SameSite=Lax`, since another site redirects the browser to the callback. */
function withCookie(response: ResponseObject, value: string, { gateway }: Context<McpSettings>): ResponseObject {
	const secure = redirectAddress(gateway).startsWith('https:') ? '; Secure' : ''
	return response.header(
		'set-cookie',
		`${COOKIE}=${value}; Path=${CALLBACK}; Max-Age=${COOKIE_SECONDS}; HttpOnly; SameSite=Lax${secure}`,
	)
}
