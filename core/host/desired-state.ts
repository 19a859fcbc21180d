/** The desired state: which plugins gateway.yaml wants, with which settings, and where to listen. Pure. */
import { hasSection, settingsOf } from '../../config/composition.ts'
import type { LateProblem } from '../../config/read.ts'
import type { Config } from '../../config/types.ts'
import type { Fault } from '../errors.ts'
import type { Address, ListenAt } from '../http/listening.ts'
import { composition, refuse } from './config.ts'

export interface WantedPlugin {
	name: string
	builtIn: boolean
	/** Folder of a third-party plugin, if it is not plugins/<name> in the home. */
	path?: string
	/** Of a built-in plugin: checked, with defaults. */
	settings: Record<string, unknown>
	/** Path of the settings in gateway.yaml, such as `webhooks` or `plugins.clock`. */
	at: string
}

export interface DesiredState {
	plugins: WantedPlugin[]
	listen: Record<Address, ListenAt>
	workers: { threads: number; runs_per_thread: number }
	log_level: string
	/** The address at which others reach the gateway; null: where it listens. */
	public_url: string | null
	/** Makes the error for mistakes in gateway.yaml, with a line and a place for each. */
	refuse(problems: readonly LateProblem[], code?: 'config_invalid' | 'unavailable'): Fault
}

/** The plugins that are switched on, and what of the settings a reload applies. */
export function desiredState(config: Config): DesiredState {
	const names = new Set([...composition.plugins.keys(), ...Object.keys(config.plugins)])
	return {
		plugins: [...names].filter((name) => isOn(config, name)).map((name) => pluginOf(config, name)),
		listen: {
			main: { host: config.server.host, port: config.server.port },
			legacy: { host: config.server.host, port: config.legacy.port },
		},
		workers: config.workers,
		log_level: config.log.level,
		public_url: config.server.public_url,
		refuse: (problems, code) => refuse(config, problems, code),
	}
}

/** Whether a plugin is wanted. Settings switch on a plugin that is off by default. */
export function isOn({ plugins }: Pick<Config, 'plugins'>, name: string): boolean {
	const entry = plugins[name]
	const enabled = typeof entry === 'object' ? entry.enabled : entry
	return enabled ?? (typeof entry === 'object' || (composition.plugins.get(name)?.onByDefault ?? true))
}

function pluginOf(config: Config, name: string): WantedPlugin {
	const declared = composition.plugins.get(name)
	const at = hasSection(declared) ? name : `plugins.${name}`
	if (declared) return { name, builtIn: true, at, settings: settingsOf(config, declared) }
	const entry = config.plugins[name]
	const { enabled: _, path, ...settings } = typeof entry === 'object' ? entry : {}
	return { name, builtIn: false, at, settings, ...(typeof path === 'string' && { path }) }
}
