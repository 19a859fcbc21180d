import { defineSettings } from '../../config/declaration.ts'
import { addressOrNull, allSettings, count } from '../../config/fields.ts'
import type { WebhookSettings } from './contract.ts'

export default defineSettings<WebhookSettings>({
	description: 'Addresses at which other services start runs.',
	topic: 'The outside world',
	schema: () =>
		allSettings<WebhookSettings>({
			public_url: addressOrNull(
				'https://gateway.example.com',
				'server.public_url',
				'Address under which other services reach the gateway, such as https://gateway.example.com;',
			),
			max_per_agent: count(1, 1000, 32, 'Webhooks of one agent.'),
			max_body_kib: count(1, 4096, 1024, 'Maximum size of one delivery, in KiB.'),
			per_minute: count(1, 1_000_000, 600, 'Signed deliveries that one webhook accepts per minute.'),
			max_concurrent: count(
				1,
				1024,
				64,
				'Signed deliveries accepted at the same time, while others wait; and, separately, bodies being read.',
			),
			max_concurrent_per_webhook: count(1, 1024, 16, 'The same, for one webhook.'),
			retention_days: count(1, 3650, 30, 'Days that the log of deliveries is kept.'),
		}),
})
