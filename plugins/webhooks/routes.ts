import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { now } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { peerOf } from '../shared/peer.ts'
import { scoped } from '../shared/scopes.ts'
import { INSTRUCTIONS_LIMIT } from './primitives.ts'
import type { WebhookRequest, WebhookSettings, Webhooks } from './contract.ts'
import { custom, scheme, secret } from './scheme-fields.ts'
import { SLUG, SLUG_RULE } from './webhooks.ts'

const iso = Joi.string().isoDate()
const name = agentName
const aSlug = Joi.string().required().example('deploys')
const slug = aSlug.max(64).description('Name of the webhook.')
const aToken = Joi.string().required().example('token-of-the-webhook')
const aDelivery = Joi.string().required().example('0197a4c2-6c6b-793c-97bb-5c8d9eafb0c1')
const aRun = Joi.string().example('0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05')
const withoutDeliver = Joi.object({
	slug: aSlug,
	scheme: scheme.required(),
	custom,
	token: aToken.description('The last part of the address of its deliveries.'),
	instructions: Joi.string()
		.description('What the agent should do with deliveries.')
		.example('Tell me which deployments failed.'),
	created_at: iso.required(),
	last_delivery: iso.allow(null).required().description('When a delivery was accepted last.'),
	delivery_count: Joi.number().integer().required().description('Deliveries that were accepted.'),
}).id('Webhook')
const newWebhook = Joi.object({
	slug: aSlug,
	url: Joi.string()
		.required()
		.description('Where deliveries are sent.')
		.example('http://127.0.0.1:3000/v1/hooks/token-of-the-webhook'),
	token: aToken,
	secret: Joi.string()
		.required()
		.description('The key of the signatures: the one that was sent, or a new one. Shown here and never again.')
		.example('secret-of-the-webhook'),
}).id('NewWebhook')
const delivery = Joi.object({
	delivery_id: aDelivery,
	webhook_slug: aSlug,
	source_ip: Joi.string().required().example('192.0.2.7'),
	signature_valid: Joi.boolean().required().example(true),
	run_id: aRun.allow(null).required().description('Null if it was refused.'),
	status_code: Joi.number().integer().required().description('The status that the sender received.').example(200),
	error: Joi.string().allow(null).required().description('Why it was refused.'),
	received_at: iso.required(),
}).id('WebhookDelivery')
const accepted = Joi.object({
	status: Joi.valid('accepted').required(),
	delivery_id: aDelivery,
}).id('AcceptedDelivery')

const challenge = Joi.object({ challenge: Joi.string().required() })
	.id('WebhookChallenge')
	.description('The challenge from Slack that checks the address; no run is started.')
	.example({ challenge: 'challenge-of-slack' })

const tested = accepted.keys({ run_id: aRun.required().description('The run that it started.') }).id('TestedDelivery')

/** Not validated before the handler, which must report an unknown token before any other error. */
const header = Joi.string().allow('')
const deliveryHeaders = Joi.object({
	'x-signature': header.description(
		'`sha256=` and the HMAC-SHA256 of the exact bytes of the body, in hexadecimal, with the secret as the key.',
	),
	'x-hub-signature-256': header.description('The same, as GitHub sends it. If both are sent, both must be valid.'),
	'x-delivery-id': header.description(
		'The id of the delivery. If it is already in the log of deliveries, it starts no second run.',
	),
	'x-github-delivery': header.description('The same, as GitHub sends it.'),
	'webhook-id': header.description('The same, by the name of Standard Webhooks.'),
}).unknown()

/** Any JSON. */
const deliveryBody = Joi.any().required().example({ event: 'deployed', version: '1.4.2' })

export function routes(server: Server, ctx: Context<WebhookSettings>, webhooks: Webhooks): void {
	const agentOf = (agent: string) => ctx.use('agents').get(agent)
	const fields = ctx.use('runs').deliverFields
	const webhook = withoutDeliver.keys({ deliver: fields.shown })

	server.route<{ Params: { token: string } }>({
		method: 'POST',
		path: '/v1/hooks/{token}',
		options: {
			id: 'deliver',
			description: 'Deliver to a webhook, which starts a run of its agent',
			notes: [
				'The body is any JSON, at most `webhooks.max_body_kib`; the agent gets all of it, as data. It must not be compressed.',
				"The webhook's `scheme` defines the signature and where the id is; the headers below are those of `svc`.",
				'Checked in this order: the token, the rate of deliveries, the length, the signature, the body.',
				'Delivery and run are durable before it responds. A repeated delivery with the same id gets the response to the first one.',
			],
			tags: ['api', 'webhooks'],
			auth: false,
			// The receiver reads the body after it has checked the token, whatever the content type.
			payload: { parse: false, output: 'stream', override: 'application/json', maxBytes: Number.MAX_SAFE_INTEGER },
			plugins: { openapi: { errors: [401, 429], body: deliveryBody, headers: deliveryHeaders } },
			// Accepts any value, since an unknown token returns 404.
			validate: { params: Joi.object({ token: aToken.description('Of the webhook.') }) },
			response: { status: { 200: Joi.alternatives(accepted, challenge) } },
		},
		handler: (request) => webhooks.receive(request.params.token, request.raw.req),
	})
	server.route<{ Params: { name: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/webhooks',
		options: {
			id: 'listWebhooks',
			description: 'List the webhooks of an agent, oldest first',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object({ name }) },
			response: { status: { 200: Joi.array().items(webhook) } },
		},
		handler: async (request) => webhooks.list(await agentOf(request.params.name)),
	})
	server.route<{ Params: { name: string }; Payload: WebhookRequest }>({
		method: 'POST',
		path: '/v1/agents/{name}/webhooks',
		options: {
			id: 'registerWebhook',
			description: 'Register a webhook for an agent, and show its address and secret',
			notes: 'Like the tool `webhook.register` of the agent. The secret is shown only here.',
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
						.description('Name of the webhook.')
						.example('deploys'),
					scheme: scheme.description('How the sender signs. Default `svc`.'),
					custom: custom.description('How a sender signs that no other scheme supports; with the scheme `custom`.'),
					secret: secret.description('Set it if the sender creates the secret. Default: a new one.'),
					instructions: Joi.string()
						.min(1)
						.max(INSTRUCTIONS_LIMIT, 'utf8')
						.description(
							'What the agent should do with deliveries, at most 10 KiB. The model gets it separately from the payload, which stays data.',
						)
						.example('Tell me which deployments failed.'),
					deliver: fields.given,
				})
					.required()
					.prefs({ convert: false }),
			},
			response: { status: { 201: newWebhook } },
		},
		handler: async ({ params, payload }, h) => {
			const { webhook: made } = await webhooks.register(await agentOf(params.name), payload)
			return h.response(made).code(201)
		},
	})
	server.route<{ Params: { name: string; slug: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{name}/webhooks/{slug}',
		options: {
			id: 'deleteWebhook',
			description: 'Delete a webhook',
			notes: 'At once: the next delivery to its address is answered with 404. Runs that it started continue.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ name, slug }) },
		},
		handler: async (request, h) => {
			await webhooks.remove(await agentOf(request.params.name), request.params.slug)
			return h.response().code(204)
		},
	})
	server.route<{ Params: { name: string; slug: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/webhooks/{slug}/rotate',
		options: {
			id: 'rotateWebhook',
			description: 'Give a webhook a new token and secret, and show them',
			notes:
				'The old ones are no longer valid. This is also how a person gets the secret of a webhook that an agent registered.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ name, slug }), payload: Joi.object({}).allow(null).example({}) },
			response: { status: { 200: newWebhook } },
		},
		handler: async ({ params }) => (await webhooks.rotate(await agentOf(params.name), params.slug)).webhook,
	})
	server.route<{ Params: { name: string; slug: string }; Payload: { secret: string } }>({
		method: 'PUT',
		path: '/v1/agents/{name}/webhooks/{slug}/secret',
		options: {
			id: 'setWebhookSecret',
			description: 'Set the secret of a webhook, and keep its address',
			notes: 'For senders that create the secret once they have the address, such as Stripe.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:write'),
			validate: {
				params: Joi.object({ name, slug }),
				payload: Joi.object({ secret: secret.required() }).required().prefs({ convert: false }),
			},
			plugins: { openapi: { answers: { 204: {} } } },
		},
		handler: async ({ params, payload }, h) => {
			await webhooks.setSecret(await agentOf(params.name), params.slug, payload.secret)
			return h.response().code(204)
		},
	})
	server.route<{ Params: { name: string; slug: string }; Payload: { payload?: unknown } | null }>({
		method: 'POST',
		path: '/v1/agents/{name}/webhooks/{slug}/test',
		options: {
			id: 'testWebhook',
			description: 'Send a test delivery to a webhook, which starts a run of its agent',
			notes: [
				'The gateway handles the payload like any signed delivery: with the same limits, durably, and with a new id, so that each test starts a run.',
				'It is in the log of deliveries, with the address of the caller.',
			],
			tags: ['api', 'webhooks'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [413, 429, 503] } },
			validate: {
				params: Joi.object({ name, slug }),
				payload: Joi.object({
					payload: Joi.any()
						.description(
							'The payload for the agent: any JSON, at most `webhooks.max_body_kib`. Default: an object with `test`, `webhook` and `sent_at`.',
						)
						.example({ event: 'deployed' }),
				})
					.allow(null)
					.prefs({ convert: false }),
			},
			response: { status: { 200: tested } },
		},
		handler: async (request) => {
			const agent = await agentOf(request.params.name)
			const { slug: wanted } = request.params
			const { payload = { test: true, webhook: wanted, sent_at: now() } } = request.payload ?? {}
			return webhooks.test(agent, wanted, payload, peerOf(request.raw.req).remoteAddress ?? 'unknown')
		},
	})
	server.route<{ Params: { name: string; slug: string }; Query: { limit: number; before?: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/webhooks/{slug}/deliveries',
		options: {
			id: 'listDeliveries',
			description: 'List the deliveries to a webhook, newest first',
			notes:
				'Accepted deliveries are kept for `webhooks.retention_days`, at most 100,000; of those with a wrong signature or body, the last 1,000.',
			tags: ['api', 'webhooks'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({ name, slug }),
				query: Joi.object({
					limit: Joi.number().integer().min(1).max(500).default(50).description('Number of deliveries per page.'),
					before: Joi.string()
						.pattern(/^[0-9a-f-]{36}$/)
						.message('{#label} must be a delivery_id')
						.description('Continue after this delivery_id.'),
				}),
			},
			response: { status: { 200: Joi.array().items(delivery) } },
		},
		handler: async ({ params, query }) => webhooks.deliveries(await agentOf(params.name), params.slug, query),
	})
}
