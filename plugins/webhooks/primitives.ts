import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context, ToolCall } from '../../core/plugin.ts'
import { asArguments } from '../shared/as-arguments.ts'
import { schemeNames } from './contract.ts'
import type { GivenWebhook, WebhookRequest, Webhooks, WebhookSettings } from './contract.ts'
import { SLUG, SLUG_RULE } from './webhooks.ts'

/** UTF-8 bytes. */
export const INSTRUCTIONS_LIMIT = 10 * 1024

const parameters = Joi.object({
	slug: Joi.string()
		.pattern(SLUG)
		.message(`{#label} ${SLUG_RULE}`)
		.required()
		.description('Name of the webhook: 1 to 64 of a-z 0-9 - _.'),
})

/** `webhook.register`, `webhook.rotate`: for the calling agent only. */
export function addPrimitives(ctx: Context<WebhookSettings>, webhooks: Pick<Webhooks, 'register' | 'rotate'>): void {
	ctx.primitive({
		name: 'webhook.register',
		description:
			'Creates an address to which another service can send you JSON; each delivery starts a new run of yours with that JSON. Returns the url and the secret by which the service signs its deliveries: they are shown only this once, so pass them on now.',
		parameters: parameters.keys({
			instructions: Joi.string()
				.min(1)
				.max(INSTRUCTIONS_LIMIT, 'utf8')
				.description('What you should do with each delivery. You get it with every delivery, separate from its data.'),
			scheme: Joi.valid(...schemeNames.filter((name) => name !== 'custom')).description(
				'How the service signs. Default: HMAC-SHA256 of the body in the header X-Signature.',
			),
			deliver: ctx.use('runs').deliverFields.given,
		}),
		run: (args, call) => revealed(call, () => webhooks.register(call.agent, args as unknown as WebhookRequest, call)),
	})
	ctx.primitive({
		name: 'webhook.rotate',
		description:
			'Gives one of your webhooks a new address and secret; the old ones stop working. The new ones are shown only this once, so pass them on now.',
		parameters,
		run: ({ slug }, call) => revealed(call, () => webhooks.rotate(call.agent, String(slug), call)),
	})
}

async function revealed(call: ToolCall, make: () => Promise<GivenWebhook>): Promise<GivenWebhook['webhook']> {
	const { webhook, secret_id } = await asArguments(make)
	call.reveal(secret_id)
	return webhook
}
