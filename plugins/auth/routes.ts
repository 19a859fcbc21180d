import type { Server } from '@hapi/hapi'
import type { CustomHelpers, ErrorReport, ObjectSchema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { isPrintable } from '../../core/util/printable.ts'
import { scoped } from '../shared/scopes.ts'
import type { GenerationView } from '../../core/plugin.ts'
import type { Auth, AuthSettings, Credentials, TokenInput } from './contract.ts'
import { limitFields } from './limits.ts'
import type { CallerLimits } from './limits.ts'
import type { OidcRule } from './oidc/contract.ts'
import { expiryOf, rulesFor, summaryOf } from './oidc/rules.ts'
import { instantOf } from './instant.ts'

const iso = Joi.string().isoDate()
const tokenId = Joi.string().required().example('0197a4c2-61bf-7e21-9c66-a1d2e3f40516')
const patterns = Joi.array().items(Joi.string().max(200)).example(['ada', 'team-*'])
const label = Joi.string().max(100).description('A name that people recognize.').example('the ticket system')
const limits = Joi.object<CallerLimits>(limitFields(Joi))
	.min(1)
	.description('Usage limits. A request over one of them gets 429 with `Retry-After`. Absent: no limits.')
	.id('CallerLimits')
const shown = {
	id: tokenId,
	scopes: Joi.array().items(Joi.string()).required().example(['agents:read', 'runs:write']),
	agents: patterns.description('The agents that it is for; absent: all.'),
	label,
	limits,
	expires_at: iso.allow(null).required().description('Null if it never expires.').example('2030-01-31T12:00:00.000Z'),
	created_at: iso.required(),
}
const token = Joi.object({ ...shown, status: Joi.valid('active', 'revoked', 'expired').required() }).id('Token')
const newToken = Joi.object({
	...shown,
	token: Joi.string().required().description('Shown here and never again.').example('svc_…'),
}).id('NewToken')

const caller = Joi.object({
	kind: Joi.valid('token', 'local', 'oidc')
		.required()
		.description('`local`: a program on this machine, without a token; `oidc`: a token of the identity provider.'),
	id: Joi.string()
		.description("The token's id, or the subject at the identity provider.")
		.example('0197a4c2-61bf-7e21-9c66-a1d2e3f40516'),
	label,
	scopes: Joi.array().items(Joi.string()).required().example(['agents:read', 'runs:write']),
	agents: patterns.description('The agents that you can see; absent: all.'),
	limits,
	expires_at: iso.allow(null).description('When the token expires; null: never.').example(null),
}).id('Caller')

const NOT_A_TIME = '{#label} must be an ISO 8601 timestamp such as 2030-01-31T12:00:00Z'
export function routes(server: Server, { oidc }: AuthSettings, auth: Auth, scopes: GenerationView['scopes']): void {
	const scopeList = [...scopes].map(([name, grants]) => `- \`${name}\`: ${grants}.`).join('\n')
	server.route<{ Payload: Omit<TokenInput, 'expires_at'> & { ttl?: string } }>({
		method: 'POST',
		path: '/v1/auth/tokens',
		options: {
			id: 'createToken',
			description: 'Create a token',
			notes: [
				"The first token ever can be created without a token: from the gateway's own machine, or from elsewhere with the set-up code that the log shows at start.",
				'With `agents` the token is for these agents only: its bearer cannot see others, and requests about the whole gateway, such as the vault, channels, tokens and backups, are refused, even with the scope `*`.',
				`Scopes:\n${scopeList}`,
			],
			tags: ['api', 'tokens'],
			auth: scoped('tokens:admin'),
			plugins: { auth: { bootstrap: true }, openapi: { errors: [409] } },
			validate: {
				headers: Joi.object({
					'x-setup-code': Joi.string().max(256).description('For the first token, if the caller is not local.'),
				}).unknown(),
				payload: newTokenRequest([...scopes.keys()])
					.required()
					.prefs({ convert: false }),
			},
			response: { status: { 201: newToken } },
		},
		handler: async (request, h) => {
			const { ttl = null, ...input } = request.payload
			const created = await auth.tokens.create(
				{ ...input, expires_at: ttl },
				request.auth.credentials.bootstrap ?? false,
			)
			return h.response(created).code(201)
		},
	})
	server.route({
		method: 'GET',
		path: '/v1/auth/me',
		options: {
			id: 'getCaller',
			description: 'Read your identity, scopes and limits',
			notes: 'For callers with any scope.',
			tags: ['api', 'tokens'],
			auth: { access: { scope: [...scopes.keys()] } },
			plugins: { auth: { changes: false, agents: 'checked' } },
			response: { status: { 200: caller } },
		},
		handler: async ({ auth: { credentials } }) => callerOf(credentials, auth, oidc?.rules ?? []),
	})
	server.route({
		method: 'GET',
		path: '/v1/auth/tokens',
		options: {
			id: 'listTokens',
			description: 'List tokens, oldest first',
			notes: 'Tokens that ended more than 90 days ago are not listed.',
			tags: ['api', 'tokens'],
			auth: scoped('tokens:admin'),
			plugins: { auth: { changes: false } },
			response: { status: { 200: Joi.object({ tokens: Joi.array().items(token).required() }) } },
		},
		handler: async () => ({ tokens: await auth.tokens.list() }),
	})
	server.route<{ Params: { id: string } }>({
		method: 'DELETE',
		path: '/v1/auth/tokens/{id}',
		options: {
			id: 'revokeToken',
			description: 'Revoke a token',
			notes: 'Takes effect at once: the next request with it is refused, and its open streams end within a second.',
			tags: ['api', 'tokens'],
			auth: scoped('tokens:admin'),
			validate: { params: Joi.object({ id: tokenId.max(64).description('Id of the token.') }) },
			response: { status: { 200: Joi.object({ id: tokenId, status: Joi.valid('revoked').required() }) } },
		},
		handler: async (request) => {
			await auth.tokens.revoke(request.params.id)
			return { id: request.params.id, status: 'revoked' }
		},
	})
}

async function callerOf(
	{ token_id, scope, actor, claims }: Credentials,
	{ tokens }: Auth,
	rules: readonly OidcRule[],
): Promise<object> {
	if (claims) return { ...actor, ...summaryOf(rulesFor(rules, claims)), expires_at: expiryOf(claims) }
	const token = token_id === null ? undefined : await tokens.get(token_id)
	if (!token) return { kind: 'local', scopes: scope }
	const { status: _status, created_at: _created, ...about } = token
	return { kind: 'token', ...about }
}

function newTokenRequest(scopeNames: readonly string[]): ObjectSchema {
	return Joi.object({
		scopes: Joi.array()
			.items(
				Joi.string()
					.valid(...scopeNames)
					.messages({ 'any.only': `{#label} must be one of ${scopeNames.join(', ')}` }),
			)
			.min(1)
			.unique()
			.required()
			.messages({ 'array.min': '{#label} must contain at least one scope' }),
		agents: Joi.array()
			.items(
				Joi.string()
					.pattern(/^[A-Za-z0-9._*-]{1,200}$/)
					.message('{#label} must be the name of an agent, or a pattern of names with *'),
			)
			.min(1)
			.max(100)
			.unique()
			.description('Names of agents, or patterns of names with `*`. Absent: all agents.')
			.example(['ada', 'team-*']),
		label: Joi.string()
			.min(1)
			.max(100)
			.custom(checkPrintable)
			.description('A name that people recognize.')
			.example('the ticket system'),
		limits,
		ttl: Joi.string()
			.isoDate()
			.custom(future)
			.messages({ 'string.isoDate': NOT_A_TIME })
			.description('When it expires: an ISO 8601 timestamp in the future, UTC if it has no time zone. Absent: never.')
			.example('2030-01-31T12:00:00Z'),
	}).example({ scopes: ['agents:read', 'runs:write'], ttl: '2030-01-31T12:00:00Z' })
}

/** Labels are shown on terminals, which interpret control characters. */
function checkPrintable(text: string, helpers: CustomHelpers): string | ErrorReport {
	return isPrintable(text) ? text : helpers.message({ custom: '{#label} must be printable characters' })
}

/** Converts the timestamp to the wire format. joi's check accepts forms that are not an instant, such as 2030-W05. */
function future(text: string, helpers: CustomHelpers): string | ErrorReport {
	const instant = instantOf(text)
	if (instant === undefined) return helpers.message({ custom: NOT_A_TIME })
	if (Date.parse(instant) <= Date.now()) return helpers.message({ custom: '{#label} must be in the future' })
	return instant
}
