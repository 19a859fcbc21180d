/**
 * What `readConfig` answers: the file, the environment and the defaults in one deep-frozen object. Every value is checked
 * and present; what a key means and which range it has stands in schema.ts. Suffixes name the unit: `_s` seconds,
 * `_days` days, `_mib` mebibytes.
 */
export interface Config {
	server: {
		host: string
		/** 0: the system picks a free one. */
		port: number
		/** Lower case, IPv6 without brackets; beyond localhost and the loopback addresses. */
		allowed_hosts: readonly string[]
		shutdown_grace_s: number
	}
	legacy: { port: number }
	auth_mode: 'loopback' | 'token'
	/** `path` is absolute. */
	store: { path: string; min_free_mib: number }
	workers: { threads: number; runs_per_thread: number }
	events: { retention_days: number }
	runs: {
		retention_days: number
		limits: RunLimits
		/** Per conversation. */
		max_waiting: number
		question_ttl_days: number
	}
	skills: {
		allow_private_urls: boolean
		processes: number
		max_waiting: number
		/** Of one call's isolate, and of the process around it. */
		memory_mib: number
		process_mib: number
		cpu_s: number
		wall_time_s: number
		max_per_agent: number
	}
	memory: { max_per_agent: number; index_mib: number }
	mcp: {
		/** Each a whole command line: the command, then its arguments. */
		allowed_commands: readonly (readonly string[])[]
		/** `host` or `host:port`. */
		allowed_hosts: readonly string[]
		max_per_agent: number
		call_timeout_s: number
		max_call_s: number
	}
	subagents: { max_per_run: number; max_depth: number }
	heartbeats: { max_per_agent: number; missed_grace_s: number }
	webhooks: {
		/** Null: where the gateway listens. */
		public_url: string | null
		max_per_agent: number
		max_body_kib: number
		/** Of one webhook. */
		per_minute: number
		max_concurrent: number
		max_concurrent_per_webhook: number
		retention_days: number
	}
	channels: {
		/** `host` or `host:port`. */
		allowed_api_roots: readonly string[]
		max_channels: number
		/** Of one channel. */
		max_bindings: number
		retention_days: number
		retry_max_s: number
	}
	backups: {
		/** Five cron fields; null: on request only. */
		schedule: string | null
		/** Null: the machine's. */
		timezone: string | null
		/** Absolute. */
		folder: string
		keep: number
		include_key: boolean
	}
	tracing: {
		/** Null: none, unless the environment names one. */
		endpoint: string | null
		sample_ratio: number
		content: boolean
	}
	/** Never empty: with none set up it holds the built-in `offline`, and `openai` where OPENAI_API_KEY is set. */
	providers: Readonly<Record<string, ProviderConfig>>
	/** A key of `providers`. */
	default_provider: string
	/** Keys of `providers`, tried in this order after the one that failed. */
	fallback: readonly string[]
	log: { level: LogLevel; format: 'auto' | 'json' | 'pretty' }
	/** As in the file, references replaced; each plugin checks its own settings. */
	plugins: Readonly<Record<string, PluginEntry>>
}

/** What every agent's runs may use where the agent's own `config.limits` says nothing else. */
export interface RunLimits {
	steps: number
	tokens: number
	wall_time_s: number
}

export type ProviderConfig = OpenaiProvider | OfflineProvider

export interface OpenaiProvider {
	kind: 'openai'
	/** Without a slash at its end. */
	base_url: string
	/** As it is, or the name of the secret that holds it. Absent where the server takes none. */
	api_key?: string | { secret: string }
	model: string
	/** Absent: the built-in embedder. */
	embedding_model?: string
	timeout_s: number
}

export interface OfflineProvider {
	kind: 'offline'
}

/** `enabled: false` among the settings switches the plugin off too; `path` names a third party's folder. */
export type PluginEntry = boolean | PluginSettings

export interface PluginSettings {
	readonly enabled?: boolean
	readonly path?: string
	readonly [setting: string]: unknown
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
