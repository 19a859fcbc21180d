import { definePlugin } from '../../core/plugin.ts'
import type { WebhookSettings, WebhooksService } from './contract.ts'
import { keepHouse } from './housekeeping.ts'
import { addPrimitives } from './primitives.ts'
import { receiverOf } from './receive.ts'
import { routes } from './routes.ts'
import { secretsOf } from './secrets.ts'
import { webhooksOf } from './webhooks.ts'

/** Webhooks: addresses at which other services start runs. */
export default definePlugin<WebhookSettings>({
	name: 'webhooks',
	needs: ['auth', 'agents', 'runs', 'vault'],
	config: (joi) =>
		joi.object<WebhookSettings>({
			public_url: joi.string().allow(null).required(),
			max_per_agent: joi.number().required(),
			max_body_kib: joi.number().required(),
			per_minute: joi.number().required(),
			max_concurrent: joi.number().required(),
			max_concurrent_per_webhook: joi.number().required(),
			retention_days: joi.number().required(),
		}),
	async start(ctx) {
		const secrets = secretsOf(ctx)
		const webhooks = webhooksOf(ctx, secrets)
		await secrets.announce()
		addPrimitives(ctx, webhooks)
		keepHouse(ctx, secrets)
		return { ...webhooks, ...receiverOf(ctx, secrets) } satisfies WebhooksService
	},
	http: (server, ctx) => routes(server, ctx),
})
