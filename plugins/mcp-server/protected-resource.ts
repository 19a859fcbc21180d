/** Says where MCP clients get an access token (RFC 9728): in a document, which the answer 401 of `/mcp` names. */
import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import { isUnrouted } from '../../core/http/server.ts'
import type { Context } from '../../core/plugin.ts'
import type { McpServerSettings } from './contract.ts'

const DOCUMENT = '/.well-known/oauth-protected-resource/mcp'
/** Where clients register for a sign-in if a server names no identity provider. */
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
		.description('What clients ask the identity provider for: the scopes that `auth.oidc.rules` want in a token.')
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
			notes: 'As RFC 9728 describes it. Needs no token. 404 without `auth.oidc`.',
			tags: ['api', 'mcp'],
			auth: false,
			plugins: { openapi: { errors: [404] } },
			response: { status: { 200: document } },
		},
		handler: () => {
			const from = issuer()
			if (from === null) throw new Fault('not_found', 'the gateway has no identity provider (auth.oidc)')
			return {
				resource: `${base()}/mcp`,
				authorization_servers: [from],
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
			const asked = String(headers['www-authenticate'] ?? 'Bearer')
			const separator = asked === 'Bearer' ? ' ' : ', '
			headers['www-authenticate'] = `${asked}${separator}resource_metadata="${base()}${DOCUMENT}"`
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

/** After a 401, clients try to sign in, and show only why that failed: many of them just `error_description`. */
function explainNoSignIn(payload: { message: string; error_description?: string }): void {
	payload.message =
		'this gateway has no sign-in by OAuth (auth.oidc); give the client a valid token, in the header Authorization: Bearer <token>'
	payload.error_description = payload.message
}
