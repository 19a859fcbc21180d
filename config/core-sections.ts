/** The gateway's own sections of gateway.yaml; plugins add theirs (`composition.ts`). */
import { availableParallelism } from 'node:os'
import joi from 'joi'
import type { Schema } from 'joi'
import { addressOrNull, count, host, section } from './fields.ts'
import type { FieldError } from '../core/errors.ts'
import type { Topic } from './declaration.ts'
import type { Config } from './types.ts'

/** A key under `plugins`; the first character excludes `.` and `..`, since the name may be a folder. */
const pluginName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

const DEFAULT_PORT = 3000

const server = section('The address of the API.', {
	host: host().default('127.0.0.1').description('Host name or IP address to listen on. Default 127.0.0.1.'),
	port: count(0, 65535, DEFAULT_PORT, 'Port of the API; 0 picks a free one.'),
	public_url: addressOrNull(
		'https://gateway.example.com',
		'where it listens',
		'Address under which browsers and other services reach the gateway, such as https://gateway.example.com. Logins return to it.',
	),
	shutdown_grace_s: count(0, 600, 10, 'Seconds that requests and runs may take to end when the gateway stops.'),
})

const legacy = section('The address of the chat API.', {
	port: count(0, 65535, 17890, 'Port of the chat API; 0 picks a free one.'),
})

const store = section('Where agents, runs and events are stored.', {
	path: joi
		.string()
		.max(1024)
		.default('data')
		.description('Folder of the database, relative to the home folder. Default data.'),
	min_free_mib: count(1, 1_048_576, 64, 'Mebibytes of free disk below which writes are refused.'),
})

const workers = section('The threads that run agents.', {
	threads: joi
		.number()
		.integer()
		.min(1)
		.max(64)
		.default(() => Math.min(4, Math.max(1, availableParallelism() - 1)))
		.example(2)
		.description('Number of worker threads. Default one less than the cores, 1 to 4.'),
	runs_per_thread: count(1, 1024, 64, 'Runs that one thread works on at the same time.'),
})

const log = section('What is logged.', {
	level: joi
		.string()
		.valid('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')
		.default('info')
		.description('The lowest level that is logged: trace, debug, info, warn, error, fatal or silent. Default info.'),
	format: joi
		.string()
		.valid('auto', 'json', 'pretty')
		.default('auto')
		.description('json, pretty for people, or auto: pretty on a terminal. Default auto.'),
})

const plugins = joi
	.object()
	.pattern(
		pluginName,
		joi
			.alternatives(
				joi.boolean(),
				joi
					.object({
						enabled: joi.boolean().description('false switches the plugin off and keeps its settings. Default true.'),
						path: joi
							.string()
							.max(1024)
							.description('Folder of a third-party plugin, relative to the folder plugins. Default its name.'),
					})
					.unknown(),
			)
			.description('true, false, or the settings of the plugin.'),
	)
	.max(256)
	.empty(null)
	.default({})
	.messages({
		'object.unknown':
			'is not a name; use 1 to 64 of letters, digits, "-", "_" and ".", beginning with a letter or digit',
	})
	.description('Plugins to switch on, to switch off or to set up, by name. Default the built-in ones.')

/** Each section with its heading in the example. */
export const coreSections: Readonly<Record<string, { schema: Schema; topic: Topic }>> = {
	server: { schema: server, topic: 'Addresses and access' },
	legacy: { schema: legacy, topic: 'Addresses and access' },
	workers: { schema: workers, topic: 'Agents at work' },
	plugins: { schema: plugins, topic: 'Plugins' },
	store: { schema: store, topic: 'Data and log' },
	log: { schema: log, topic: 'Data and log' },
}

/** Texts for the example that the schema cannot provide. */
export const coreExamples: Readonly<Record<string, string>> = {
	plugins: `# name: true, name: false, or settings. A section with the same name at the top of the file has the same meaning. A plugin
# that is not built in is a folder with its name under plugins/, or the folder at path.
#plugins:
  #my-plugin:
    #enabled: false
    #path: ./my-plugin
`,
}

/** Settings and sections whose changes apply at the next start; all others apply at once. */
export const appliedAtStart: readonly string[] = ['store', 'workers.lend', 'log.format']

/** `path`: the keys of a setting or a section. */
export function isAppliedAtStart(path: readonly string[]): boolean {
	return appliedAtStart.some((key) => `${path.join('.')}.`.startsWith(`${key}.`))
}

/** Variables that override the gateway's own settings. */
export const coreVariables: readonly { path: string; variable: string; isNumber?: boolean }[] = [
	{ path: 'server.host', variable: 'SVC_HOST' },
	{ path: 'server.port', variable: 'SVC_PORT', isNumber: true },
	{ path: 'legacy.port', variable: 'SVC_LEGACY_PORT', isNumber: true },
	{ path: 'log.level', variable: 'SVC_LOG_LEVEL' },
]

/** The gateway's own settings that had another name or place: former path → present path. Plugins list theirs in `settings.ts`. */
export const coreRenamed: Readonly<Record<string, string>> = {}

/** The gateway's own environment variables that had another name: former name → present name. */
export const coreRenamedVariables: Readonly<Record<string, string>> = {}

/** Valid settings that contradict each other, reported for one that is not the default. */
export function coreMistakes({ server: { port }, legacy: { port: legacyPort } }: Config): FieldError[] {
	if (port === 0 || port !== legacyPort) return []
	const path = port === DEFAULT_PORT ? 'legacy.port' : 'server.port'
	return [{ path, message: 'server.port and legacy.port must differ' }]
}
