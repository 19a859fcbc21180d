import type { Server } from '@hapi/hapi'
import Joi from 'joi'
import type { Context } from '../../core/plugin.ts'
import { scoped } from '../../core/routes.ts'
import type {} from '../agents/contract.ts'
import type { WebhookSettings, WebhooksService } from './contract.ts'
import { SLUG, SLUG_RULE } from './webhooks.ts'

const iso = Joi.string().isoDate()
const name = Joi.string().max(64).required().description('Name of the agent.')
const slug = Joi.string().max(64).required().description('Name of the webhook.')
const webhook = Joi.object({
	slug: Joi.string().required(),
	token: Joi.string().required().description('The last part of the address of its deliveries.'),
	created_at: iso.required(),
	last_delivery: iso.allow(null).required().description('When a delivery was accepted last.'),
	delivery_count: Joi.number().integer().required().description('Deliveries that were accepted.'),
}).id('Webhook')
const newWebhook = Joi.object({
	slug: Joi.string().required(),
	url: Joi.string().required().description('Where deliveries are sent.'),
	token: Joi.string().required(),
	secret: Joi.string().required().description('The key of the signatures. Shown here and never again.'),
}).id('NewWebhook')
const delivery = Joi.object({
	delivery_id: Joi.string().required(),
	webhook_slug: Joi.string().required(),
	source_ip: Joi.string().required(),
	signature_valid: Joi.boolean().required(),
	run_id: Joi.string().allow(null).required().description('Null where it was refused.'),
	status_code: Joi.number().integer().required().description('What the sender was answered.'),
	error: Joi.string().allow(null).required().description('Why it was refused.'),
	received_at: iso.required(),
}).id('WebhookDelivery')
const accepted = Joi.object({
	status: Joi.valid('accepted').required(),
	delivery_id: Joi.string().required(),
}).id('AcceptedDelivery')

/** They never refuse anything here: an unknown token is answered before all else. */
const header = Joi.string().allow('')
const deliveryHeaders = Joi.object({
	'x-signature': header.description(
		'`sha256=` and the HMAC-SHA256 of the very bytes of the body, in lower-case hexadecimal, with the secret as the key.',
	),
	'x-hub-signature-256': header.description('The same, as GitHub sends it. Where both are sent, both must be right.'),
	'x-delivery-id': header.description('The same again within the log of deliveries starts no second run.'),
	'x-github-delivery': header.description('The same, as GitHub sends it.'),
	'webhook-id': header.description('The same, as Standard Webhooks has it.'),
}).unknown()

export function routes(server: Server, ctx: Context<WebhookSettings>): void {
	const webhooks = (): WebhooksService => ctx.use('webhooks')
	const agentOf = (agent: string) => ctx.use('agents').get(agent)

	server.route<{ Params: { token: string } }>({
		method: 'POST',
		path: '/v1/hooks/{token}',
		options: {
			description: 'Deliver to a webhook, which starts a run of its agent',
			notes: [
				'The body is any JSON, at most `webhooks.max_body_kib`; the agent gets it whole, as data. It must not be compressed.',
				'Checked in this order: the token, how many deliveries there are, the length, the signature, the body.',
				'Delivery and run are durable before it answers. A delivery that is sent again under the same id answers with the first one.',
			],
			tags: ['api', 'webhooks'],
			auth: false,
			// Read by the receiver, after the token was looked at. Whatever type it says it has, it gets that far.
			payload: { parse: false, output: 'stream', override: 'application/json', maxBytes: Number.MAX_SAFE_INTEGER },
			plugins: { openapi: { errors: [401, 429, 503] } },
			validate: { headers: deliveryHeaders },
			response: { status: { 200: accepted } },
		},
		handler: (request) => webhooks().receive(request.params.token, request.raw.req),
	})
	server.route<{ Params: { name: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/webhooks',
		options: {
			description: 'List the webhooks of an agent, oldest first',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object({ name }) },
			response: { status: { 200: Joi.array().items(webhook) } },
		},
		handler: async (request) => webhooks().list(await agentOf(request.params.name)),
	})
	server.route<{ Params: { name: string }; Payload: { slug: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/webhooks',
		options: {
			description: 'Register a webhook for an agent, and show its address and secret',
			notes: 'As `webhook.register` does for the agent itself. The secret is shown here and never again.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object({ name }),
				payload: Joi.object({
					slug: Joi.string()
						.pattern(SLUG)
						.message(`{#label} ${SLUG_RULE}`)
						.required()
						.description('Name of the webhook.'),
				})
					.required()
					.prefs({ convert: false }),
			},
			response: { status: { 201: newWebhook } },
		},
		handler: async (request, h) => {
			const agent = await agentOf(request.params.name)
			const { webhook: made, secret_id } = await webhooks().register(agent, request.payload.slug)
			request.app.reveals = new Set([secret_id])
			return h.response(made).code(201)
		},
	})
	server.route<{ Params: { name: string; slug: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{name}/webhooks/{slug}',
		options: {
			description: 'Delete a webhook',
			notes: 'At once: the next delivery to its address is answered with 404. Runs that it started go on.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ name, slug }) },
			response: { emptyStatusCode: 204 },
		},
		handler: async (request, h) => {
			await webhooks().remove(await agentOf(request.params.name), request.params.slug)
			return h.response().code(204)
		},
	})
	server.route<{ Params: { name: string; slug: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/webhooks/{slug}/rotate',
		options: {
			description: 'Give a webhook a new token and secret, and show them',
			notes:
				'The old ones are no longer good. Also for a person who sets up the other service of a webhook that an agent registered.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ name, slug }), payload: Joi.object({}).allow(null) },
			response: { status: { 200: newWebhook } },
		},
		handler: async (request) => {
			const agent = await agentOf(request.params.name)
			const { webhook: made, secret_id } = await webhooks().rotate(agent, request.params.slug)
			request.app.reveals = new Set([secret_id])
			return made
		},
	})
	server.route<{ Params: { name: string; slug: string }; Query: { limit: number; before?: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/webhooks/{slug}/deliveries',
		options: {
			description: 'List the deliveries to a webhook, newest first',
			notes:
				'Accepted ones for `webhooks.retention_days`, 100,000 at most; of those with a wrong signature or body the last 1,000.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({ name, slug }),
				query: Joi.object({
					limit: Joi.number().integer().min(1).max(500).default(50),
					before: Joi.string()
						.pattern(/^[0-9a-f-]{36}$/)
						.message('{#label} must be a delivery_id')
						.description('Go on behind this delivery_id.'),
				}),
			},
			response: { status: { 200: Joi.array().items(delivery) } },
		},
		handler: async (request) => {
			const agent = await agentOf(request.params.name)
			return webhooks().deliveries(agent, request.params.slug, request.query)
		},
	})
}
