/** The composition root: puts configuration, store, run pool and plugins together into a gateway that listens. */
import { join } from 'node:path'
import { prepareHome } from '../config/first-start.ts'
import { configFile } from '../config/home.ts'
import { readConfig, readText, variablesOf } from '../config/read.ts'
import type { Config } from '../config/types.ts'
import { announce, digestOf, withdrawAnnouncement } from './announcement.ts'
import { finishRestore } from './backup/place.ts'
import { Gateway } from './gateway.ts'
import { BUILT_IN, Loader } from './loader.ts'
import { lockHome } from './lock.ts'
import { openLog } from './log.ts'
import type { Logger } from './log.ts'
import { openRunPool } from './runs.ts'
import { openRedactor } from './redactor.ts'
import { openLmdb } from './store/lmdb/open.ts'
import { Watcher } from './watch.ts'
import { takenAtStart, wishOf } from './wish.ts'

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
	const file = configFile(home)
	const stack = new AsyncDisposableStack()
	try {
		const config = readConfig({ home, env })
		let latest = config
		/** Of the file as it was read last. */
		let digest: string | null = null
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
				digest = null
				const text = readText(file)
				digest = digestOf(text)
				latest = readConfig({ home, env, text, mustSay: running })
				tellOfLate(latest, config, log)
				return wishOf(latest)
			},
			reloaded() {
				if (stack.disposed) return
				followPlugins()
				try {
					say() // the port may be another one
				} catch (error) {
					log.error({ err: error }, 'other programs are not told of the change')
				}
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
		const say = (): void => {
			const { status } = gateway
			announce(home, {
				pid: process.pid,
				url: status.url('main'),
				legacy_url: status.url('legacy'),
				settings: { digest, refused: status.configError(), variables: variablesOf(latest) },
				trouble: Object.fromEntries(
					status.plugins().flatMap(({ name, last_error }) => (last_error === null ? [] : [[name, last_error]])),
				),
			})
		}
		// A refused change is already logged, told as an event and shown by /readyz.
		const reload = (): void => void gateway.reload().catch(() => {})
		const watcher = stack.use(new Watcher([file, join(home, 'plugins')], reload))
		followPlugins()
		stack.defer(() => withdrawAnnouncement(home))
		say()
		await watcher.ready()
		// Nobody has seen a change that was made until now.
		if (digestNow(file) !== digest) reload()
		return { gateway, config, log, stop: () => stack.disposeAsync() }
	} catch (error) {
		await stack.disposeAsync()
		throw error
	}
}

function tellOfLate(config: Config, first: Config, log: Logger): void {
	for (const key of takenAtStart) {
		if (JSON.stringify(config[key]) !== JSON.stringify(first[key]))
			log.warn(`the change of "${key}" takes effect at the next start`)
	}
}

function digestNow(file: string): string | null {
	try {
		return digestOf(readText(file))
	} catch {
		return null
	}
}
