import type { Server } from '@hapi/hapi'
import Joi from 'joi'
import { Fault, isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { SHORTEST } from '../../core/redactor/forms.ts'
import { isOrdinary } from '../../core/redactor/ordinary.ts'
import { scoped } from '../../core/routes.ts'
import type { VaultService } from './contract.ts'
import { NAME } from './handles.ts'

const VALUE_LIMIT_BYTES = 64 * 1024
const TAGS = ['api', 'vault']
const LOCKED = 503

// joi's own message would repeat what was sent, which may be a value in the wrong field.
const worded = (form: RegExp, rule: string) =>
	Joi.string()
		.pattern(form)
		.messages({ 'string.pattern.base': `{#label} must be ${rule}` })
const secretName = worded(NAME, '1 to 128 of A-Z a-z 0-9 _ . -')
const value = Joi.string()
	.min(1)
	.max(VALUE_LIMIT_BYTES, 'utf8')
	.messages({ 'string.max': '{#label} may have at most {#limit} bytes as UTF-8' })
	.custom((text: string, helpers) =>
		text.isWellFormed()
			? text
			: helpers.message({ custom: '{#label} must be Unicode text; this has half a surrogate pair' }),
	)
	.description('The secret itself: text of at most 64 KiB as UTF-8. It is never shown again.')
const label = worded(/^[A-Za-z0-9_.-]{1,64}$/, '1 to 64 of A-Z a-z 0-9 _ . -').description(
	'What it is for; channel marks a secret for channel use.',
)
const secretId = Joi.string().required().example('0197a4c2-6a49-771a-95ff-3a6b7c8d9eaf')
const secretRef = Joi.string().max(128).required().description('Id of the secret, or its name.').example('GITHUB_TOKEN')
const grantId = Joi.string().required().example('0197a4c2-6b5a-782b-86aa-4b7c8d9eafb0')
const agentId = worded(
	/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
	'the name of an agent: 1 to 64 of A-Z a-z 0-9 - _ . that begin with a letter or digit',
)
	.description('Name of the agent.')
	.example('ada')

const newSecret = Joi.object({
	name: secretName.description('What agents and settings call it.').example('GITHUB_TOKEN'),
	key_name: secretName.description('The same as name; give one of the two.'),
	value: value.required(),
	policy_label: label,
})
	.xor('name', 'key_name')
	.messages({ 'object.xor': 'give the name as name or as key_name, not as both', 'object.missing': 'name is required' })
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
	warning: Joi.string().description('What to know of this value, such as that it is too short to be redacted.'),
}).id('StoredSecret')
const grant = Joi.object({
	grant_id: grantId,
	agent_id: Joi.string().required().example('ada'),
	secret_id: secretId,
	reveal: Joi.boolean().required(),
	created_at: Joi.string().isoDate().required(),
}).id('Grant')

export function routes(server: Server, ctx: Context): void {
	const vault = (): VaultService => ctx.use('vault')

	server.route<{ Payload: { name?: string; key_name?: string; value: string; policy_label?: string } }>({
		method: 'POST',
		path: '/v1/vault/secrets',
		options: {
			id: 'createSecret',
			description: 'Store a secret',
			notes: 'Its name is given as name or as key_name. Agents read it only under a grant: POST /v1/vault/grants.',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [409] } },
			validate: { payload: newSecret.required().prefs({ convert: false }) },
			response: { status: { 201: storedSecret } },
		},
		handler: async (request, h) => {
			const { name, key_name, value: text, policy_label } = request.payload
			const created = await vault().secrets.create({
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
			notes: 'Never their values.',
			tags: TAGS,
			auth: scoped('vault:read'),
			plugins: { openapi: { errors: [LOCKED] } },
			response: { status: { 200: Joi.array().items(secret) } },
		},
		handler: () => vault().secrets.list(),
	})
	server.route<{ Params: { id: string }; Payload: { value: string } }>({
		method: 'PUT',
		path: '/v1/vault/secrets/{id}',
		options: {
			id: 'replaceSecret',
			description: 'Give a secret another value',
			notes: 'Its grants stay. The earlier value is gone, and is still redacted until the gateway ends.',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object({ id: secretRef }),
				payload: Joi.object({ value: value.required() })
					.required()
					.prefs({ convert: false })
					.example({ value: 'what the other service calls a token now' }),
			},
			response: { status: { 200: storedSecret } },
		},
		handler: async (request) => {
			const { value: text } = request.payload
			try {
				return { ...(await vault().secrets.replace(request.params.id, text)), ...warningFor(text) }
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
			notes: 'Where it was read, its value is still redacted until the gateway ends, or a hundred more are deleted.',
			tags: TAGS,
			auth: scoped('vault:write'),
			validate: { params: Joi.object({ id: secretRef }) },
			response: { emptyStatusCode: 204 },
		},
		handler: async (request, h) => {
			await vault().secrets.remove(request.params.id)
			return h.response().code(204)
		},
	})
	server.route<{ Payload: { agent_id: string; secret_id: string; reveal?: boolean } }>({
		method: 'POST',
		path: '/v1/vault/grants',
		options: {
			id: 'createGrant',
			description: 'Grant an agent a secret',
			notes:
				"The agent's model gets a handle, {{secret:NAME}}, which the gateway replaces by the value in the arguments of skills and MCP tools. With reveal it gets the value itself.",
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [404, 409] } },
			validate: {
				payload: Joi.object({
					agent_id: agentId.required(),
					secret_id: secretRef.min(1),
					reveal: Joi.boolean().description('Whether the model itself may see the value. Default false.'),
				})
					.required()
					.prefs({ convert: false }),
			},
			response: { status: { 201: grant } },
		},
		handler: async (request, h) => {
			const { agent_id, secret_id, reveal = false } = request.payload
			return h.response(await vault().grants.create({ agent_id, secret: secret_id, reveal })).code(201)
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
			plugins: { openapi: { errors: [LOCKED] } },
			validate: { query: Joi.object({ agent_id: agentId }) },
			response: { status: { 200: Joi.array().items(grant) } },
		},
		handler: (request) => vault().grants.list(request.query.agent_id),
	})
	server.route<{ Params: { grant_id: string } }>({
		method: 'DELETE',
		path: '/v1/vault/grants/{grant_id}',
		options: {
			id: 'revokeGrant',
			description: 'Revoke a grant',
			notes: 'At once: the next read is denied.',
			tags: TAGS,
			auth: scoped('vault:write'),
			validate: { params: Joi.object({ grant_id: grantId.max(128).description('Id of the grant.') }) },
			response: { emptyStatusCode: 204 },
		},
		handler: async (request, h) => {
			await vault().grants.remove(request.params.grant_id)
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
				'Makes a new keys/vault.key and wraps the key of every secret anew; values stay as they are. Backups made before need the earlier key file: keep it with them. Where the key comes from SVC_VAULT_KEY or a credential, this is 409, and the message says how it is done there.',
			tags: TAGS,
			auth: scoped('vault:write'),
			plugins: { openapi: { errors: [409] } },
			response: {
				status: {
					200: Joi.object({
						status: Joi.valid('rotated').required(),
						secrets: Joi.number().integer().required().description('How many were wrapped anew.').example(12),
					}).id('KeyRotation'),
				},
			},
		},
		handler: async () => ({ status: 'rotated', secrets: await vault().rotateKey() }),
	})
}

function warningFor(text: string): { warning?: string } {
	const wanted = text.trim()
	if (wanted.length >= SHORTEST && !isOrdinary(wanted)) return {}
	return {
		warning: `a value of fewer than ${SHORTEST} characters, or one that is a word of the gateway's own, is not redacted from events, logs and messages`,
	}
}
