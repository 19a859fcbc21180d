import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import joi from 'joi'
import type { CustomHelpers, NumberSchema, ObjectSchema, StringSchema } from 'joi'
import { messages } from './messages.ts'
import type { Config } from './types.ts'

/** The settings as the schema answers them: checked and with defaults, but by themselves. */
export type Settings = Omit<Config, 'default_provider'> & { default_provider?: string }

/** The names that `providers` may have. */
const providerName = /^[A-Za-z0-9_.-]{1,64}$/
/** What `plugins` may name; the first character keeps `.` and `..` from being folders. */
const pluginName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/
const anAddress = 'an address such as https://api.openai.com/v1'

const openai = section('A server that speaks the OpenAI API: OpenAI itself, Ollama, vLLM, LM Studio and many more.', {
	kind: joi.string().valid('openai').required().description('The API that the server speaks: openai.'),
	base_url: joi
		.string()
		.max(2048)
		// Not joi's uri(): its expression takes 10 ms of every start to compile.
		.pattern(/^https?:\/\/\S+$/, anAddress)
		.custom(apiAddress)
		.default('https://api.openai.com/v1')
		.description('Address of the API, with its version. Default https://api.openai.com/v1.'),
	api_key: joi
		.alternatives(
			joi
				.string()
				.empty('')
				.max(4096)
				.pattern(/^[\x21-\x7e]+$/, 'printable ASCII without spaces or line breaks'),
			joi.object({
				secret: joi
					.string()
					.pattern(/^[A-Za-z0-9_.-]{1,128}$/, '1 to 128 of letters, digits, "-", "_" and "."')
					.required()
					.description('Name or id of the secret in the vault that holds the key.'),
			}),
		)
		.messages({ 'alternatives.types': 'must be text, or secret: NAME for one that the vault has' })
		.description(
			'Key of the API, best as a reference such as ${OPENAI_API_KEY} or {secret: NAME}; leave it out where none is needed.',
		),
	model: joi
		.string()
		.max(256)
		.required()
		.messages({ 'any.required': 'is missing; give the name of a model that this server has' })
		.description('Model for agents that name none, such as gpt-4o-mini.'),
	embedding_model: joi
		.string()
		.max(256)
		.description(
			'Model that makes embeddings for long-term memory, such as text-embedding-3-small. Default the built-in one.',
		),
	timeout_s: count(1, 3600, 120, 'Seconds that one call may take.'),
})

const offline = section('The built-in provider: deterministic, without network.', {
	kind: joi.string().valid('offline').required().description('The built-in provider: offline.'),
})

/** Judges the kind alone, so that an unknown one is not followed by complaints about its settings. */
const unknownKind = joi
	.object({
		kind: joi
			.string()
			.valid('openai', 'offline')
			.required()
			.messages({ 'any.required': 'is missing; it must be openai or offline' }),
	})
	.unknown()

/**
 * gateway.yaml, strictly: unknown keys are refused, nothing is converted, all problems are found at once.
 * Descriptions are one plain sentence with unit and default, since editors and the documentation show them.
 */
export const configSchema: ObjectSchema<Settings> = joi
	.object<Settings>({
		server: section('The address of the API.', {
			host: host().default('127.0.0.1').description('Host name or IP address to listen on. Default 127.0.0.1.'),
			port: count(0, 65535, 3000, 'Port of the API; 0 picks a free one.'),
			allowed_hosts: joi
				.array()
				.items(host().description('A host name.'))
				.max(64)
				.unique()
				.empty(null)
				.default([])
				.description('Further host names under which local clients may call without a token. Default none.'),
			shutdown_grace_s: count(0, 600, 10, 'Seconds that requests and runs may take to end when the gateway stops.'),
		}),
		legacy: section('The address of the older chat surface.', {
			port: count(0, 65535, 17890, 'Port of the older chat surface; 0 picks a free one.'),
		}),
		auth_mode: joi
			.string()
			.valid('loopback', 'token')
			.default('loopback')
			.description('loopback: local clients need no token; token: every request needs one. Default loopback.'),
		store: section('Where agents, runs and events are kept.', {
			path: joi
				.string()
				.max(1024)
				.default('data')
				.description('Folder of the database, relative to the home folder. Default data.'),
			min_free_mib: count(1, 1_048_576, 64, 'Mebibytes of free disk below which writes are refused.'),
		}),
		workers: section('The threads that run agents.', {
			threads: joi
				.number()
				.integer()
				.min(1)
				.max(64)
				.default(() => Math.min(4, Math.max(1, availableParallelism() - 1)))
				.description('Number of worker threads. Default one less than the cores, 1 to 4.'),
			runs_per_thread: count(1, 1024, 64, 'Runs that one thread works on side by side.'),
		}),
		events: section('The event log.', {
			retention_days: count(1, 3650, 30, 'Days that events are kept.'),
		}),
		runs: section('What runs may use, and how long they are kept.', {
			retention_days: count(1, 3650, 30, 'Days that ended runs are kept.'),
			limits: section('Limits of one run, for agents that set none of their own.', {
				steps: count(1, 10_000, 50, 'Model calls of one run.'),
				tokens: count(1, 1_000_000_000, 500_000, 'Tokens of one run, prompts and answers together.'),
				wall_time_s: count(1, 604_800, 900, 'Seconds that one run may take, without the time it waits for an answer.'),
			}),
			max_waiting: count(1, 10_000, 100, 'Runs that may wait in one conversation.'),
			question_ttl_days: count(1, 365, 7, 'Days that a question waits for its answer.'),
		}),
		skills: section('What agents learn from Markdown files, and where the code in them runs.', {
			allow_private_urls: flag(false, 'Whether any caller may install a skill from a private address.'),
			processes: count(1, 32, 2, 'Processes in which the code of skills runs, one call at a time in each.'),
			max_waiting: count(1, 10_000, 100, 'Calls that may wait for a process.'),
			memory_mib: count(8, 1024, 64, 'Mebibytes that the code of one call may use.'),
			process_mib: count(128, 4096, 256, 'Mebibytes that the process around it may use.'),
			cpu_s: count(1, 300, 5, 'Seconds that one call may compute.'),
			wall_time_s: count(1, 3600, 60, 'Seconds that one call may take, waiting for answers included.'),
			max_per_agent: count(1, 1000, 100, 'Skills of one agent, revisions in quarantine included.'),
		}),
		memory: section('Long-term memory.', {
			max_per_agent: count(
				1,
				1_000_000,
				100_000,
				'Memories of one agent; at the limit none is stored until some are forgotten.',
			),
			index_mib: count(
				16,
				65_536,
				512,
				'Mebibytes that search indexes may hold in memory; those of idle agents go first.',
			),
		}),
		mcp: section('Servers that give agents tools by the Model Context Protocol.', {
			allowed_commands: joi
				.array()
				.items(
					joi
						.array()
						.items(joi.string().max(4096).description('The command or one of its arguments.'))
						.min(1)
						.max(64)
						.description('A whole command line; items such as NAME= before it are variables that callers may set.'),
				)
				.max(256)
				.empty(null)
				.default([])
				.description('Command lines that callers without the scope * may start as a stdio server. Default none.'),
			allowed_hosts: joi
				.array()
				.items(joi.string().max(300).custom(hostAndPort).description('A host, or host:port.'))
				.max(256)
				.unique()
				.empty(null)
				.default([])
				.description('Hosts at private addresses that callers without the scope * may name. Default none.'),
			max_per_agent: count(1, 256, 16, 'Servers of one agent.'),
			call_timeout_s: count(1, 3600, 60, 'Seconds that one call may take without a sign of progress.'),
			max_call_s: count(1, 86_400, 600, 'Seconds that one call may take in all.'),
		}),
		subagents: section('Agents that an agent starts.', {
			max_per_run: count(0, 64, 8, 'Sub-agents that one run may start.'),
			max_depth: count(0, 8, 2, 'How deep sub-agents may start further ones.'),
		}),
		heartbeats: section('Runs that start by the clock.', {
			max_per_agent: count(1, 1000, 32, 'Heartbeats of one agent.'),
			missed_grace_s: count(
				0,
				604_800,
				3600,
				'Seconds after its time for which a missed beat still fires, once; a later one is skipped.',
			),
		}),
		webhooks: section('Addresses at which other services start runs.', {
			public_url: joi
				.string()
				.max(2048)
				.pattern(/^https?:\/\/\S+$/, 'an address such as https://gateway.example.com')
				.allow(null)
				.default(null)
				.description('Address under which other services reach the gateway; null: where it listens. Default null.'),
			max_per_agent: count(1, 1000, 32, 'Webhooks of one agent.'),
			max_body_kib: count(1, 4096, 1024, 'Kibibytes of one delivery.'),
			per_minute: count(1, 1_000_000, 600, 'Signed deliveries that one webhook takes in a minute.'),
			max_concurrent: count(
				1,
				1024,
				64,
				'Signed deliveries that are taken in at the same time; and, apart from them, bodies that are waited for.',
			),
			max_concurrent_per_webhook: count(1, 1024, 16, 'The same, of one webhook.'),
			retention_days: count(1, 3650, 30, 'Days that the log of deliveries is kept.'),
		}),
		channels: section('Chat platforms that agents are reached by.', {
			allowed_api_roots: joi
				.array()
				.items(joi.string().max(300).custom(hostAndPort).description('A host, or host:port.'))
				.max(256)
				.unique()
				.empty(null)
				.default([])
				.description('Hosts that callers without the scope * may name in config.api_root. Default none.'),
			max_channels: count(1, 1000, 64, 'Channels that there may be.'),
			max_bindings: count(1, 100_000, 10_000, 'Chats that may be bound in one channel.'),
			retention_days: count(1, 365, 30, 'Days that the ids of messages are kept, to know one that comes twice.'),
			retry_max_s: count(1, 3600, 60, 'Seconds that the delays between attempts to connect grow to.'),
		}),
		backups: section('Copies of everything that the gateway keeps.', {
			schedule: joi
				.string()
				.max(256)
				.allow(null)
				.default(null)
				.description('When to take one, as five cron fields such as 0 3 * * *; null: on request only. Default null.'),
			timezone: joi
				.string()
				.max(64)
				.allow(null)
				.default(null)
				.description("Time zone of the schedule, such as Europe/Rome; null: the machine's. Default null."),
			folder: joi
				.string()
				.max(4096)
				.default('backups')
				.description('Where they go, relative to the home folder. Default backups.'),
			keep: count(1, 1000, 7, 'Scheduled backups that are kept; older ones are removed.'),
			include_key: flag(
				true,
				"Whether the vault's key is in them: without it a backup opens no secrets, with it whoever has one can.",
			),
		}),
		tracing: section('Spans of runs, model calls and tools, for OpenTelemetry.', {
			endpoint: joi
				.string()
				.max(2048)
				.pattern(/^https?:\/\/\S+$/, 'an address such as http://127.0.0.1:4318')
				.allow(null)
				.default(null)
				.description(
					'Address of a collector that takes OTLP over HTTP; null: OTEL_EXPORTER_OTLP_ENDPOINT, or none. Default null.',
				),
			sample_ratio: joi
				.number()
				.min(0)
				.max(1)
				.default(1)
				.description('The share of runs that are traced, 0 to 1. Default 1.'),
			content: flag(false, 'Whether prompts, answers and arguments go along, without secrets'),
		}),
		providers: joi
			.object()
			.pattern(
				providerName,
				joi.alternatives().conditional('.kind', {
					switch: [
						// oxlint-disable unicorn/no-thenable -- joi's word; nobody awaits these
						{ is: 'openai', then: openai },
						{ is: 'offline', then: offline },
						// oxlint-enable unicorn/no-thenable
					],
					otherwise: unknownKind,
				}),
			)
			.max(32)
			.empty(null)
			.default({})
			.description('The model servers, by names of your own. Default the built-in offline provider.'),
		default_provider: joi
			.string()
			.max(64)
			.description('The provider for agents that name none. Default the only one there is.'),
		fallback: joi
			.array()
			.items(joi.string().max(64).description('A name from providers.'))
			.max(8)
			.unique()
			.empty(null)
			.default([])
			.description('Providers to try, in this order, when one fails. Default none.'),
		log: section('What is logged.', {
			level: joi
				.string()
				.valid('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')
				.default('info')
				.description('The least level that is logged. Default info.'),
			format: joi
				.string()
				.valid('auto', 'json', 'pretty')
				.default('auto')
				.description('json, pretty for people, or auto: pretty on a terminal. Default auto.'),
		}),
		plugins: joi
			.object()
			.pattern(
				pluginName,
				joi
					.alternatives(
						joi.boolean(),
						joi
							.object({
								enabled: joi
									.boolean()
									.description('false switches the plugin off and keeps its settings. Default true.'),
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
			.description('Plugins to switch on, to switch off or to set up, by name. Default the built-in ones.'),
	})
	.prefs({
		convert: false,
		abortEarly: false,
		messages,
		errors: { wrap: { array: false, label: false } },
	})

/** A map of settings. One whose settings are all commented out reads as null, which means: all defaults. */
function section(description: string, keys: Record<string, joi.Schema>): ObjectSchema {
	return joi.object(keys).empty(null).default().description(description)
}

function count(min: number, max: number, fallback: number, description: string): NumberSchema {
	const text = description.replace(/\.$/, '')
	return joi.number().integer().min(min).max(max).default(fallback).description(`${text}. Default ${fallback}.`)
}

function flag(fallback: boolean, description: string): joi.BooleanSchema {
	return joi
		.boolean()
		.default(fallback)
		.description(`${description.replace(/\.$/, '')}. Default ${fallback}.`)
}

function host(): StringSchema {
	return joi.string().max(253).custom(hostName)
}

function hostAndPort(text: string, helpers: CustomHelpers): unknown {
	if (isIP(text) !== 0) return text
	const url = URL.parse(`http://${text}/`)
	if (url && url.pathname === '/' && !url.username && !url.search && !/[/?#@\\]/.test(text)) return text
	return helpers.message({
		custom: 'must be a host name or address, with or without a port, such as 10.0.0.5 or wiki.lan:8080',
	})
}

/** Lower case, an IPv6 address without brackets: as a `Host` header is compared. */
function hostName(text: string, helpers: CustomHelpers): unknown {
	const bare = text.replace(/^\[(.*)\]$/, '$1').toLowerCase()
	if (isIP(bare) || /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/.test(bare)) return bare
	return helpers.message({ custom: 'must be a host name or IP address without scheme, port or path' })
}

/** The SDK appends paths to it, and fetch refuses an address with a user in it. */
function apiAddress(text: string, helpers: CustomHelpers): unknown {
	const url = URL.parse(text)
	if (!url) return helpers.message({ custom: `must be ${anAddress}` })
	if (url.username || url.password) {
		return helpers.message({ custom: 'must not hold a user or password; put the key into api_key' })
	}
	if (url.search || url.hash) return helpers.message({ custom: 'must end with its path, without "?" or "#"' })
	return text.replace(/\/+$/, '')
}
