/** What the operator wants, from what gateway.yaml says: which plugins, with which settings, and where to listen. Pure. */
import { locate } from '../config/read.ts'
import type { Config } from '../config/types.ts'
import type { WantedPlugin, Wish } from './gateway.ts'

export function wishOf(config: Config): Wish {
	const names = new Set([...Object.keys(builtIn), ...Object.keys(config.plugins)])
	return {
		plugins: [...names].filter((name) => isOn(config, name)).map((name) => pluginOf(config, name)),
		listen: {
			main: { host: config.server.host, port: config.server.port },
			legacy: { host: config.server.host, port: config.legacy.port },
		},
		workers: config.workers,
		locate: (path) => locate(config, path),
	}
}

/** Sections of gateway.yaml whose changes wait for the next start; all others count at once. */
export const takenAtStart = ['store', 'log'] as const

/** Whether a plugin is wanted. Who gives settings to one that is off by default wants it. */
export function isOn({ plugins }: Pick<Config, 'plugins'>, name: string): boolean {
	const said = plugins[name]
	const enabled = typeof said === 'object' ? said.enabled : said
	return alwaysOn.has(name) || (enabled ?? (typeof said === 'object' || onByDefault(name)))
}

/** Built-in plugins, and whether they run where gateway.yaml does not say. */
const builtIn: Readonly<Record<string, boolean>> = {
	system: true,
	auth: true,
	agents: true,
	models: true,
	runs: true,
	events: true,
	vault: true,
	skills: true,
	memory: true,
	mcp: true,
	subagents: true,
	heartbeats: true,
	webhooks: true,
	channels: true,
	'chat-a': true,
	'chat-b': true,
	'legacy-chat': true,
	metrics: true,
	tracing: true,
	backups: true,
	'openai-api': false,
	'mcp-server': false,
}

function onByDefault(name: string): boolean {
	return Object.hasOwn(builtIn, name) ? builtIn[name] === true : true
}

/** Without it nobody could be told from anybody. */
const alwaysOn = new Set(['auth'])

function pluginOf(config: Config, name: string): WantedPlugin {
	const said = config.plugins[name]
	const { enabled: _, path, ...settings } = typeof said === 'object' ? said : {}
	return {
		name,
		builtIn: Object.hasOwn(builtIn, name),
		...(typeof path === 'string' && { path }),
		settings: { ...sectionOf(config, name), ...settings },
	}
}

/** Sections of gateway.yaml that belong to a built-in plugin: they are its settings, so a change replaces just that one. */
function sectionOf(config: Config, name: string): object {
	switch (name) {
		case 'auth':
			return { auth_mode: config.auth_mode, allowed_hosts: config.server.allowed_hosts, host: config.server.host }
		case 'models':
			return { providers: config.providers, default_provider: config.default_provider, fallback: config.fallback }
		case 'runs':
			return config.runs
		case 'events':
		case 'skills':
		case 'memory':
		case 'mcp':
		case 'subagents':
		case 'heartbeats':
		case 'webhooks':
		case 'channels':
		case 'tracing':
			return config[name]
		case 'backups':
			return { ...config.backups, min_free_mib: config.store.min_free_mib }
		default:
			return {}
	}
}
