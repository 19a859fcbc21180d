import { definePlugin } from '../../core/plugin.ts'
import type { ErrorCode } from '../../core/plugin.ts'
import events from './events.ts'
import type { WebhookCode, WebhookSettings, Webhooks } from './contract.ts'
import { maintain } from './maintenance.ts'
import { addPrimitives } from './primitives.ts'
import { receiverOf } from './receive.ts'
import { routes } from './routes.ts'
import { secretsOf } from './secrets.ts'
import { webhooksOf } from './webhooks.ts'

/** Webhooks: addresses at which other services start runs. */
export default definePlugin<WebhookSettings, Webhooks>({
	name: 'webhooks',
	needs: ['auth', 'agents', 'runs', 'vault'],
	events,
	errors: {
		signature_invalid: { status: 401, description: 'The signature of the delivery is missing or wrong.' },
	} satisfies Record<WebhookCode, ErrorCode>,
	async start(ctx) {
		const secrets = secretsOf(ctx)
		const webhooks = webhooksOf(ctx, secrets)
		await secrets.redactAll()
		addPrimitives(ctx, webhooks)
		maintain(ctx, secrets)
		return { ...webhooks, ...receiverOf(ctx, secrets) }
	},
	http: routes,
})
