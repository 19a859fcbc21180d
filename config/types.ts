/**
 * The settings of a gateway: the file, the environment and the defaults in one deep-frozen object. Every value is valid
 * and present. Suffixes name the unit: `_s` seconds, `_days` days, `_mib` mebibytes. A plugin's `contract.ts` adds the
 * plugin's part:
 *
 *     declare module '../../config/types.ts' { interface Config { clock: ClockSettings } }
 */
export interface Config {
	server: ServerSettings
	legacy: { port: number }
	store: StoreSettings
	workers: WorkerSettings
	log: { level: LogLevel; format: 'auto' | 'json' | 'pretty' }
	/** Whether each plugin is switched on, and settings of third-party plugins, which those plugins check themselves. */
	plugins: Readonly<Record<string, PluginEntry>>
}

/** All paths are absolute. */
export interface StoreSettings {
	/** Used if `url` is null. */
	path: string
	min_free_mib: number
	/**
	 * Where another engine stores the data instead. The plugin that provides the engine declares this and its other settings
	 * (core/engines/contract.ts).
	 */
	url: string | null
}

export interface WorkerSettings {
	threads: number
	/** Runs that one thread works on at the same time. */
	runs_per_thread: number
}

export interface ServerSettings {
	host: string
	/** 0: the system picks a free one. */
	port: number
	/** Null: where it listens. */
	public_url: string | null
	shutdown_grace_s: number
}

/** `enabled: false` among the settings also switches the plugin off. `path`: the folder of a third-party plugin. */
export type PluginEntry = boolean | PluginSettings

export interface PluginSettings {
	readonly enabled?: boolean
	readonly path?: string
	readonly [setting: string]: unknown
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
