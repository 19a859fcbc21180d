import { isIP } from 'node:net'
import type { Server } from '@hapi/hapi'
import type { CustomHelpers, ErrorReport } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault, isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { isRedactable } from '../../core/redactor/redactor.ts'
import { agentId } from '../shared/agent-name.ts'
import { scoped } from '../shared/scopes.ts'
import type { VaultService } from './contract.ts'
import { NAME } from './handles.ts'

const VALUE_LIMIT_BYTES = 64 * 1024
const HOSTS_LIMIT = 32
const TAGS = ['api', 'vault']
const LOCKED = 503

// Unlike joi's own message, this one does not repeat the input, which may be a value in the wrong field.
const matching = (form: RegExp, rule: string) =>
	Joi.string()
		.pattern(form)
		.messages({ 'string.pattern.base': `{#label} must be ${rule}` })
const secretName = matching(NAME, '1 to 128 of A-Z a-z 0-9 _ . -')
const value = Joi.string()
	.min(1)
	.max(VALUE_LIMIT_BYTES, 'utf8')
	.messages({ 'string.max': '{#label} may have at most {#limit} bytes as UTF-8' })
	.custom((text: string, helpers) =>
		text.isWellFormed()
			? text
			: helpers.message({ custom: '{#label} must be valid Unicode text; it contains a lone surrogate' }),
	)
	.description('The secret itself: text of at most 64 KiB as UTF-8. It is never shown again.')
const label = matching(/^[A-Za-z0-9_.-]{1,64}$/, '1 to 64 of A-Z a-z 0-9 _ . -').description(
	'The purpose of the secret; channel marks a secret for channels.',
)
const secretId = Joi.string().required().example('0197a4c2-6a49-771a-95ff-3a6b7c8d9eaf')
const secretRef = Joi.string().max(128).required().description('Id of the secret, or its name.').example('GITHUB_TOKEN')
const grantId = Joi.string().required().example('0197a4c2-6b5a-782b-86aa-4b7c8d9eafb0')

const newSecret = Joi.object({
	name: secretName.description('The name that agents and settings use.').example('GITHUB_TOKEN'),
	key_name: secretName.description('The same as name; use one of the two.'),
	value: value.required(),
	policy_label: label,
})
	.xor('name', 'key_name')
	.messages({ 'object.xor': 'use either name or key_name, not both', 'object.missing': 'name is required' })
	.example({ name: 'GITHUB_TOKEN', value: 'what the other service calls a token' })

const shownSecret = {
	id: secretId,
	name: Joi.string().required().example('GITHUB_TOKEN'),
	created_at: Joi.string().isoDate().required(),
	policy_label: Joi.string(),
}
const secret = Joi.object({
	...shownSecret,
	damaged: Joi.valid(true).description('Its record was changed outside the gateway or is damaged: delete it.'),
}).id('Secret')
const storedSecret = Joi.object({
	...shownSecret,
	warning: Joi.string().description('A warning about this value, such as that it is too short to be redacted.'),
}).id('StoredSecret')
const grant = Joi.object({
	grant_id: grantId,
	agent_id: Joi.string().required().example('ada'),
	secret_id: secretId,
	reveal: Joi.boolean().required(),
	hosts: Joi.array()
		.items(Joi.string())
		.description('The only hosts to which the value may be sent. Absent: no restriction.'),
	created_at: Joi.string().isoDate().required(),
}).id('Grant')

export function routes(server: Server, ctx: Context, vault: VaultService): void {
	server.route<{ Payload: { name?: string; key_name?: string; value: string; policy_label?: string } }>({
		method: 'POST',
		path: '/v1/vault/secrets',
		options: {
			id: 'createSecret',
			description: 'Store a secret',
			notes: 'Use either name or key_name. An agent can read the secret only with a grant: POST /v1/vault/grants.',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [409] } },
			validate: { payload: newSecret.required().prefs({ convert: false }) },
			response: { status: { 201: storedSecret } },
		},
		handler: async (request, h) => {
			const { name, key_name, value: text, policy_label } = request.payload
			const created = await vault.secrets.create({
				name: name ?? (key_name as string),
				value: text,
				...(policy_label !== undefined && { policy_label }),
			})
			return h.response({ ...created, ...warningFor(text) }).code(201)
		},
	})
	server.route({
		method: 'GET',
		path: '/v1/vault/secrets',
		options: {
			id: 'listSecrets',
			description: 'List secrets, oldest first',
			notes: 'Values are never shown.',
			tags: TAGS,
			auth: scoped('vault:read'),
			plugins: { openapi: { errors: [LOCKED] } },
			response: { status: { 200: Joi.array().items(secret) } },
		},
		handler: () => vault.secrets.list(),
	})
	server.route<{ Params: { id: string }; Payload: { value: string; policy_label?: string } }>({
		method: 'PUT',
		path: '/v1/vault/secrets/{id}',
		options: {
			id: 'replaceSecret',
			description: 'Change the value of a secret',
			notes:
				'Its grants stay. If the secret was read, the earlier value is kept, encrypted, and is still redacted, until the secret is deleted.',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object({ id: secretRef }),
				payload: Joi.object({
					value: value.required(),
					policy_label: label.description(
						'The current label of the secret; any other is a conflict, since a label cannot be changed.',
					),
				})
					.required()
					.prefs({ convert: false })
					.example({ value: 'what the other service calls a token now' }),
			},
			response: { status: { 200: storedSecret } },
		},
		handler: async (request) => {
			const { value: text, policy_label } = request.payload
			try {
				return { ...(await vault.secrets.replace(request.params.id, text, policy_label)), ...warningFor(text) }
			} catch (error) {
				if (!isFault(error, 'store_damaged')) throw error
				throw new Fault('conflict', error.message, { cause: error })
			}
		},
	})
	server.route<{ Params: { id: string } }>({
		method: 'DELETE',
		path: '/v1/vault/secrets/{id}',
		options: {
			id: 'deleteSecret',
			description: 'Delete a secret with its grants',
			notes:
				'If it was read, its value is still redacted until the gateway stops, or until a hundred more secrets are deleted.',
			tags: TAGS,
			auth: scoped('vault:write'),
			validate: { params: Joi.object({ id: secretRef }) },
		},
		handler: async (request, h) => {
			await vault.secrets.remove(request.params.id)
			return h.response().code(204)
		},
	})
	server.route<{ Payload: { agent_id: string; secret_id: string; reveal?: boolean; hosts?: string[] } }>({
		method: 'POST',
		path: '/v1/vault/grants',
		options: {
			id: 'createGrant',
			description: 'Grant an agent a secret',
			notes: [
				"The agent's model gets a handle, {{secret:NAME}}, which the gateway replaces by the value in the arguments of skills that declare the secret, and of MCP tools. With `reveal` it gets the value itself.",
				'With `hosts` the value is sent only in HTTP requests to these hosts, redirects included: requests to an MCP server over HTTP, and those of a skill with svc.fetch. No program gets it: neither an MCP server over stdio nor the code of a skill, which keeps the handle and can write it into a request.',
			],
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [404, 409] } },
			validate: {
				payload: Joi.object({
					agent_id: agentId.required(),
					secret_id: secretRef.min(1),
					reveal: Joi.boolean().description('Whether the model itself may see the value. Default false.'),
					hosts: Joi.array()
						.items(Joi.string().max(300).custom(hostEntry))
						.min(1)
						.max(HOSTS_LIMIT)
						.unique()
						.description(
							'The only hosts to which the value may be sent, each a complete name or address. Without a port, any port is allowed. Not together with reveal. Default: no restriction.',
						),
				})
					.required()
					.prefs({ convert: false })
					.example({ agent_id: 'ada', secret_id: 'GITHUB_TOKEN', hosts: ['api.github.com'] }),
			},
			response: { status: { 201: grant } },
		},
		handler: async (request, h) => {
			const { agent_id, secret_id, reveal = false, hosts } = request.payload
			const wanted = { agent_id, secret: secret_id, reveal, ...(hosts && { hosts }) }
			return h.response(await vault.grants.create(wanted)).code(201)
		},
	})
	server.route<{ Query: { agent_id?: string } }>({
		method: 'GET',
		path: '/v1/vault/grants',
		options: {
			id: 'listGrants',
			description: 'List grants, oldest first',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { auth: { changes: false }, openapi: { errors: [LOCKED] } },
			validate: { query: Joi.object({ agent_id: agentId }) },
			response: { status: { 200: Joi.array().items(grant) } },
		},
		handler: (request) => vault.grants.list(request.query.agent_id),
	})
	server.route<{ Params: { grant_id: string } }>({
		method: 'DELETE',
		path: '/v1/vault/grants/{grant_id}',
		options: {
			id: 'revokeGrant',
			description: 'Revoke a grant',
			notes: 'Takes effect immediately: the next read is denied.',
			tags: TAGS,
			auth: scoped('vault:write'),
			validate: { params: Joi.object({ grant_id: grantId.max(128).description('Id of the grant.') }) },
		},
		handler: async (request, h) => {
			await vault.grants.remove(request.params.grant_id)
			return h.response().code(204)
		},
	})
	server.route({
		method: 'POST',
		path: '/v1/vault/rotate-key',
		options: {
			id: 'rotateVaultKey',
			description: 'Change the master key',
			notes:
				'Creates a new keys/vault.key and encrypts the key of every secret again; values do not change. Earlier backups need the previous key file: keep it as long as these backups. If the key comes from SVC_VAULT_KEY or a credential, the answer is 409, and its message explains what to do instead.',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [409] } },
			response: {
				status: {
					200: Joi.object({
						status: Joi.valid('rotated').required(),
						secrets: Joi.number()
							.integer()
							.required()
							.description('Number of secrets whose keys were encrypted again.')
							.example(12),
					}).id('KeyRotation'),
				},
			},
		},
		handler: async () => ({ status: 'rotated', secrets: await vault.rotateKey() }),
	})
	server.route({
		method: 'POST',
		path: '/v1/vault/reset',
		options: {
			id: 'resetVault',
			description: 'Empty a vault whose master key is lost',
			notes:
				'Deletes all secrets and grants, and unlocks the vault with the present key, or with a new keys/vault.key if there is none. Refused with 409 unless the vault is locked. Webhooks and logins of MCP servers whose secrets the lost key protected must be created again.',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [409, LOCKED] } },
			response: {
				status: {
					200: Joi.object({
						status: Joi.valid('reset').required(),
						secrets: Joi.number().integer().required().description('Number of secrets that were deleted.').example(3),
					}).id('VaultReset'),
				},
			},
		},
		handler: async () => ({ status: 'reset', secrets: await vault.reset() }),
	})
}

/** Normalizes a host like the URL parser, so that it can be compared with the host of a URL. */
function hostEntry(text: string, helpers: CustomHelpers): string | ErrorReport {
	const [, host = '', port] = isIP(text) === 6 ? [text, `[${text}]`] : (/^(.+?)(?::([1-9]\d{0,4}))?$/.exec(text) ?? [])
	const url = /[\s/?#@\\*%]/.test(text) ? null : URL.parse(`http://${host}:${port ?? 80}/`)
	if (url) return port === undefined ? url.hostname : `${url.hostname}:${port}`
	return helpers.message({
		custom: '{#label} must be one host, such as api.example.com or api.example.com:8443; no scheme, no path and no *',
	})
}

function warningFor(text: string): { warning?: string } {
	if (isRedactable(text)) return {}
	return {
		warning:
			'this value has fewer than 8 characters, or is a word that the gateway itself uses, so it is not redacted from events, logs and messages',
	}
}
