import type { EventType } from '../../core/plugin.ts'

const plugin = 'Its name.'
const generation = 'Number of reloads that changed something.'

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
		description: 'A plugin could not be loaded or started, or has thrown an uncaught error.',
		payload: {
			plugin,
			message: 'The error, for people.',
			'untold?': 'How many more uncaught errors there were since the last such event. There is at most one a minute.',
		},
	},
	'config.reloaded': {
		description: 'A change to the configuration has taken effect.',
		payload: { generation },
	},
	'config.rejected': {
		description: 'A change to the configuration is invalid; the last good one stays in force.',
		payload: {
			message: 'The errors, for people.',
			'errors?': 'Each problem: `path` and `message`, and `line` and `column` of a mistake in the file.',
		},
	},
	'gateway.started': {
		description: 'The gateway is ready.',
		payload: { version: "The gateway's version.", generation },
	},
	'gateway.error': {
		description: 'The gateway itself has thrown an uncaught error.',
		payload: {
			message: 'The error, for people.',
			'untold?': 'How many more uncaught errors there were since the last such event. There is at most one a minute.',
		},
	},
	'gateway.stopping': {
		description: 'The gateway is stopping.',
		payload: {},
	},
} satisfies Record<string, EventType>
