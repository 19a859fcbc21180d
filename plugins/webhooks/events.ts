import type { EventType } from '../../core/plugin.ts'

export default {
	'webhook.registered': {
		description: 'An agent registered a webhook.',
		payload: { slug: 'The webhook.' },
	},
	'webhook.rotated': {
		description: 'A webhook got a new token and secret, or a new secret alone.',
		payload: { slug: 'The webhook.' },
	},
	'webhook.deleted': {
		description: 'A webhook was deleted.',
		payload: { slug: 'The webhook.' },
	},
	'webhook.accepted': {
		description: 'A delivery to a webhook was accepted and started a run.',
		payload: {
			slug: 'The webhook.',
			delivery_id: 'The delivery in its log.',
			run_id: 'The run that it started.',
		},
	},
	'webhook.rejected': {
		description: 'A delivery to a webhook was refused.',
		payload: {
			slug: 'The webhook.',
			delivery_id: 'The delivery in its log; null if it is not stored there.',
			source_ip: 'The address of its sender.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'The error message.',
			'untold?': 'How many more deliveries were refused since the last such event.',
			'since?': 'When the first of these arrived.',
			'sources?': 'Addresses of their senders, at most 16.',
		},
	},
} satisfies Record<string, EventType>
