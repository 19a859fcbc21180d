/** Tells MCP clients where to get an access token (RFC 9728): in a document, whose address is in the 401 responses of `/mcp`. */
import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import { isUnrouted } from '../../core/http/server.ts'
import type { Context } from '../../core/plugin.ts'
import type { McpServerSettings } from './contract.ts'

const DOCUMENT = '/.well-known/oauth-protected-resource/mcp'
/** The path at which clients try to register if a server names no authorization server. */
const REGISTRATION = '/register'

const document = Joi.object({
	resource: Joi.string()
		.required()
		.description('The address of the MCP server.')
		.example('https://agents.example.com/mcp'),
	authorization_servers: Joi.array()
		.items(Joi.string())
		.required()
		.description('`auth.oidc.issuer`.')
		.example(['https://login.example.com']),
	scopes_supported: Joi.array()
		.items(Joi.string())
		.required()
		.description('The scopes to request from the identity provider: those that `auth.oidc.rules` require.')
		.example(['agents']),
	bearer_methods_supported: Joi.array().items(Joi.string()).required().example(['header']),
}).id('ProtectedResource')

export function announceIssuer(server: Server, ctx: Context<McpServerSettings>): void {
	const issuer = (): string | null => ctx.use('auth').issuer
	const base = (): string => ctx.gateway.publicUrl() ?? ''
	server.route({
		method: 'GET',
		path: DOCUMENT,
		options: {
			id: 'describeMcpResource',
			description: 'Where MCP clients get an access token',
			notes: 'The protected resource metadata of RFC 9728. Needs no token. 404 without `auth.oidc`.',
			tags: ['api', 'mcp'],
			auth: false,
			plugins: { openapi: { errors: [404] } },
			response: { status: { 200: document } },
		},
		handler: () => {
			const authorizationServer = issuer()
			if (authorizationServer === null) throw new Fault('not_found', 'the gateway has no identity provider (auth.oidc)')
			return {
				resource: `${base()}/mcp`,
				authorization_servers: [authorizationServer],
				scopes_supported: ctx.use('auth').issuerScopes,
				bearer_methods_supported: ['header'],
			}
		},
	})
	server.ext(
		'onPreResponse',
		({ response }, h) => {
			if (issuer() === null || !('isBoom' in response) || response.output.statusCode !== 401) return h.continue
			const { headers } = response.output
			const challenge = String(headers['www-authenticate'] ?? 'Bearer')
			const separator = challenge === 'Bearer' ? ' ' : ', '
			headers['www-authenticate'] = `${challenge}${separator}resource_metadata="${base()}${DOCUMENT}"`
			return h.continue
		},
		{ sandbox: 'plugin' },
	)
	server.ext('onPreResponse', (request, h) => {
		const { response, method, path } = request
		if (issuer() !== null || method !== 'post' || path !== REGISTRATION) return h.continue
		if (isUnrouted(request) && 'isBoom' in response) explainNoSignIn(response.output.payload)
		return h.continue
	})
}

/** After a 401, clients try to sign in, and show only the error of that attempt; many show only its `error_description`. */
function explainNoSignIn(payload: { message: string; error_description?: string }): void {
	payload.message =
		'this gateway has no sign-in by OAuth (auth.oidc); give the client a valid token, in the header Authorization: Bearer <token>'
	payload.error_description = payload.message
}
