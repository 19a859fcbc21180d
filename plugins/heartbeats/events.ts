import type { EventType } from '../../core/plugin.ts'

const times = {
	heartbeat_id: 'Its id.',
	cron: 'Its cron expression, or null.',
	timezone: 'Its time zone, or null.',
	every: 'Its interval, such as `30m`, or null.',
	at: 'When it fires, if only once; otherwise null.',
}

export default {
	'heartbeat.created': {
		description: 'A heartbeat was set up for an agent.',
		payload: { ...times, next_at: 'When it fires first.' },
	},
	'heartbeat.changed': {
		description: 'A heartbeat was changed, paused or resumed.',
		payload: { ...times, next_at: 'When it fires next; null while it is paused.' },
	},
	'heartbeat.fired': {
		description: 'A heartbeat started a run.',
		payload: {
			heartbeat_id: 'Its id.',
			due_at: 'When it was due.',
			run_id: 'The run that it started.',
		},
	},
	'heartbeat.skipped': {
		description: 'A heartbeat was due but started no run.',
		payload: {
			heartbeat_id: 'Its id.',
			due_at: 'When it was due.',
			reason: '`busy`: the agent is at work; `missed`: it was due too long ago; `queue_full`.',
			next_at: 'When it is due next; null if it was to fire once.',
		},
	},
	'heartbeat.deleted': {
		description: 'A heartbeat was deleted. One that fires once is deleted without this event when it has fired.',
		payload: { heartbeat_id: 'Its id.' },
	},
} satisfies Record<string, EventType>
