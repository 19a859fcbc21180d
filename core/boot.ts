/** The composition root: puts configuration, store, run pool and plugins together into a gateway that listens. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { prepareHome } from '../config/first-start.ts'
import { locate, readConfig } from '../config/read.ts'
import type { Config } from '../config/types.ts'
import { finishRestore } from './backup/place.ts'
import { messageOf } from './errors.ts'
import { Gateway } from './gateway.ts'
import type { WantedPlugin, Wish } from './gateway.ts'
import { BUILT_IN, Loader } from './loader.ts'
import { lockHome } from './lock.ts'
import { openLog } from './log.ts'
import type { Logger } from './log.ts'
import { openRunPool } from './runs.ts'
import { openRedactor } from './redactor.ts'
import { openLmdb } from './store/lmdb/open.ts'
import { Watcher } from './watch.ts'

/** Built-in plugins, and whether they run where gateway.yaml does not say. */
const builtIn: Record<string, boolean> = {
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

/** Sections of gateway.yaml whose changes wait for the next start; all others count at once. */
export const takenAtStart = ['store', 'log'] as const

/** Without it nobody could be told from anybody. */
const alwaysOn = new Set(['auth'])

export interface BootOptions {
	home: string
	env: NodeJS.ProcessEnv
	/** For tests: compare every answer with its route's schema. */
	checkResponses?: boolean
}

export interface Running {
	gateway: Gateway
	config: Config
	log: Logger
	/** Drains and gives everything back. May be called again. */
	stop(): Promise<void>
}

/** Throws a Fault whose message says what to change: `config_invalid`, `home_in_use`, `store_damaged`, `unavailable` (a port in use). */
export async function boot({ home, env, checkResponses = false }: BootOptions): Promise<Running> {
	await finishRestore(home)
	const { notes } = prepareHome(home)
	const stack = new AsyncDisposableStack()
	try {
		const config = readConfig({ home, env })
		let latest = config
		const redactor = openRedactor()
		const log = openLog(config.log, redactor)
		for (const note of notes) log.warn(note)
		stack.use(await lockHome(home))
		const engine = stack.use(
			await openLmdb({ path: config.store.path, minFreeBytes: config.store.min_free_mib * 1024 * 1024, log }),
		)
		const pool = openRunPool({ worker: new URL('../sandbox/worker.ts', import.meta.url), ...config.workers, log })
		const gateway = new Gateway({
			version: '0.1.0',
			home,
			env,
			redactor,
			engine,
			pool,
			loader: new Loader(new URL('../plugins/', import.meta.url), join(home, 'plugins')),
			log,
			readWish(running) {
				latest = readConfig({ home, env, mustSay: running })
				return wishOf(latest, config, log)
			},
			checkResponses,
		})
		stack.defer(() => gateway.stop(latest.server.shutdown_grace_s * 1000))
		await gateway.start()

		const watched = (): string[] =>
			gateway.status.plugins().flatMap((one) => (one.source === null || one.source === BUILT_IN ? [] : one.source))
		const followPlugins = (): void => {
			watcher
				.follow(watched())
				.catch((error: unknown) => log.error({ err: error }, 'a plugin folder could not be watched'))
		}
		// A refused change is already logged, told as an event and shown by /readyz.
		const reloaded = (): void => {
			followPlugins()
			announce(home, gateway) // the port may be another one
		}
		const reload = (): void => void gateway.reload().then(reloaded, () => {})
		const watcher = stack.use(new Watcher([join(home, 'config', 'gateway.yaml'), join(home, 'plugins')], reload))
		followPlugins()
		stack.defer(announce(home, gateway))
		await watcher.ready()
		return { gateway, config, log, stop: () => stack.disposeAsync() }
	} catch (error) {
		await stack.disposeAsync()
		throw error
	}
}

function wishOf(config: Config, first: Config, log: Logger): Wish {
	for (const key of takenAtStart) {
		if (JSON.stringify(config[key]) !== JSON.stringify(first[key]))
			log.warn(`the change of "${key}" takes effect at the next start`)
	}
	const plugins: WantedPlugin[] = []
	const names = new Set([...Object.keys(builtIn), ...Object.keys(config.plugins)])
	for (const name of names) {
		const said = config.plugins[name]
		const { enabled, path, ...settings } = typeof said === 'object' ? said : { enabled: said }
		// Who gives settings to a plugin that is off by default wants it.
		const on = alwaysOn.has(name) || (enabled ?? (typeof said === 'object' || (builtIn[name] ?? true)))
		if (!on) continue
		plugins.push({
			name,
			builtIn: name in builtIn,
			...(typeof path === 'string' && { path }),
			settings: { ...sectionOf(config, name), ...settings },
		})
	}
	return {
		plugins,
		listen: {
			main: { host: config.server.host, port: config.server.port },
			legacy: { host: config.server.host, port: config.legacy.port },
		},
		workers: config.workers,
		locate: (path) => locate(config, path),
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

/** Tells other programs of this machine where the gateway listens. Answers with what takes that back. */
function announce(home: string, gateway: Gateway): () => void {
	const file = join(home, 'run', 'gateway.json')
	const { status } = gateway
	try {
		mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 })
		const text = JSON.stringify({ pid: process.pid, url: status.url('main'), legacy_url: status.url('legacy') })
		// By rename, so that nobody reads half of it.
		writeFileSync(`${file}.new`, `${text}\n`, { mode: 0o600 })
		renameSync(`${file}.new`, file)
	} catch (error) {
		throw new Error(`${file} cannot be written: ${messageOf(error)}`, { cause: error })
	}
	return () => rmSync(file, { force: true })
}
