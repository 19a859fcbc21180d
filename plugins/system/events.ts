import type { EventType } from '../../core/plugin.ts'

const plugin = 'Its name.'
const generation = 'Counts the reloads that changed something.'

export default {
	'plugin.started': {
		description: 'A plugin was switched on.',
		payload: { plugin, generation },
	},
	'plugin.stopped': {
		description: 'A plugin was switched off.',
		payload: { plugin, generation },
	},
	'plugin.reloaded': {
		description: 'A plugin was replaced, since its settings or its code changed.',
		payload: { plugin, generation },
	},
	'plugin.failed': {
		description: 'A plugin does not load or start, or did not catch an error.',
		payload: {
			plugin,
			message: 'What is wrong, for people.',
			'untold?':
				'How many more errors it did not catch since the last such event; there is at most one event a minute.',
		},
	},
	'config.reloaded': {
		description: 'A change of the configuration is in force.',
		payload: { generation },
	},
	'config.rejected': {
		description: 'A change of the configuration is invalid; the last good one stays in force.',
		payload: {
			message: 'What is wrong, for people.',
			'errors?': 'Each problem: `path` and `message`, and `line` and `column` of a mistake in the file.',
		},
	},
	'gateway.started': {
		description: 'The gateway is ready.',
		payload: { version: 'Of the gateway.', generation },
	},
	'gateway.error': {
		description: 'The gateway itself did not catch an error.',
		payload: {
			message: 'What is wrong, for people.',
			'untold?': 'How many more errors there were since the last such event; there is at most one event a minute.',
		},
	},
	'gateway.stopping': {
		description: 'The gateway stops.',
		payload: {},
	},
} satisfies Record<string, EventType>
