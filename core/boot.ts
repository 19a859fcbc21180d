/** The composition root: builds a listening gateway from configuration, store, run pool and plugins. */
import { readlinkSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { valueAt } from '../config/composition.ts'
import { checkFolder } from './backup/check-folder.ts'
import type { BackupRequest } from './backup/create.ts'
import { finishRestore } from './backup/place.ts'
import type { Member, MemberOptions } from './engines/contract.ts'
import { engineFor, openEngine } from './engines/open.ts'
import { messageOf } from './errors.ts'
import type { Fault } from './errors.ts'
import { Gateway } from './gateway.ts'
import {
	configFile,
	installationKey,
	prepareHome,
	presentEnvironment,
	readConfig,
	readText,
	unknownVariables,
} from './host/config.ts'
import type { Config } from './host/config.ts'
import { liveSettings } from './host/live-settings.ts'
import { Loader } from './host/loader.ts'
import { Watcher } from './host/watch.ts'
import { Listeners } from './http/listeners.ts'
import type { Address } from './http/listening.ts'
import { openLog } from './log/log.ts'
import type { Logger } from './log/log.ts'
import { guardHome } from './process/home-guard.ts'
import { lockHome } from './process/lock.ts'
import { removeRuntimeFile, writeRuntimeFile } from './process/runtime-file.ts'
import type { RuntimeFile } from './process/runtime-file.ts'
import { refuseShared } from './process/shared-home.ts'
import { openRedactor } from './redactor/redactor.ts'
import { RunPool } from './runs/run-pool.ts'
import { agentsIn } from './store/agent-scope.ts'
import type { Engine } from './store/ports.ts'
import type { UpgradeProgress } from './upgrade/progress.ts'
import { upgradeOf } from './upgrade/upgrade.ts'
import type { Upgrade } from './upgrade/upgrade.ts'
import { isFullDisk } from './util/full-disk.ts'
import { programOf } from './util/own-code.ts'
import { reserveOf } from './util/shares.ts'

const RUNTIME_FILE_RETRY_MS = 1_000

export interface BootOptions {
	home: string
	env: NodeJS.ProcessEnv
	/** Sockets that were handed over, by their descriptors. */
	handed?: ReadonlyMap<Address, number>
	/** For tests: compare every answer with its route's schema. */
	checkResponses?: boolean
	/** Starts these plugins alone; the others are neither started nor removed. */
	only?: readonly string[]
	/** Take no backup before the home is upgraded. */
	noBackup?: boolean
	/** Called often while the home is upgraded. */
	upgrading?(progress: UpgradeProgress): void
	/** Ends the wait for another gateway that works on the same data. */
	stopWaiting?: AbortSignal
	/** Called once a waiting gateway listens, and again when it listens at a second address. */
	waiting?(at: Waiting): void
	/** Called with the gateway before it starts: from then on it handles uncaught errors. */
	created?(gateway: Gateway): void
}

export interface Waiting extends Pick<RuntimeFile, 'url' | 'legacy_url'> {
	/** The working gateway: its machine and process. */
	holder: string
}

export interface Running {
	gateway: Gateway
	config: Config
	log: Logger
	/**
	 * Settles when another gateway has taken over the data, or may have. From then on the store refuses everything, and the
	 * process must restart. Absent if no other machine can use the data.
	 */
	lost?: Promise<Fault>
	/** The name of the first agent; undefined if no agent exists. */
	firstAgent(): Promise<string | undefined>
	/** Drains, then releases everything. Further calls do nothing. */
	stop(): Promise<void>
}

/** Throws a Fault whose message says what to change: `config_invalid`, `home_in_use`, `store_damaged`, `unavailable` (a port in use). */
export async function boot(options: BootOptions): Promise<Running> {
	const { home, only, created, handed, stopWaiting } = options
	const env = presentEnvironment(options.env)
	const warning = refuseShared(home, env)
	await finishRestore(home)
	const { notes } = prepareHome(home)
	if (warning !== null) notes.push(warning)
	const file = configFile(home)
	const worker = programOf(new URL('../sandbox/worker.ts', import.meta.url))
	const stack = new AsyncDisposableStack()
	try {
		const config = readConfig({ home, env })
		const redactor = openRedactor()
		const log = openLog(config.log, redactor)
		for (const note of notes) log.warn(note)
		for (const { name, meant } of unknownVariables(options.env, { text: readText(file) })) {
			// A name that resembles no other may be the variable of a third-party plugin.
			if (meant !== undefined) log.warn(`nothing reads the variable ${name}; ${meant} is probably meant`)
		}
		let isWatched = false
		const guard = stack.use(guardHome({ home, env, log, modesFixed: () => reload(), isReady: () => isWatched }))
		const settings = liveSettings({ first: config, home, env, log, check: () => guard.check() })
		stack.use(await lockHome(home))
		if (config.store.url === null) checkFolder(config.store.path, log)
		const listeners = new Listeners(log, handed)
		const member = await openMember({
			config,
			worker,
			listeners,
			log,
			installationKey: () => installationKey(home, env),
			listening(holder) {
				const at = urlsOf(listeners)
				writeRuntimeFile(home, {
					pid: process.pid,
					role: 'waiting',
					...at,
					settings: settings.report(null),
					trouble: {},
				})
				options.waiting?.({ ...at, holder })
			},
		})
		if (member) {
			stack.use(member)
			stack.defer(() => removeRuntimeFile(home))
		}
		const engine = stack.use(
			await openEngine({
				store: config.store,
				home,
				log,
				...(stopWaiting && { signal: stopWaiting }),
				...(member && { onLeaseObserved: (lease) => member.onLeaseObserved(lease) }),
			}),
		)
		const pool = new RunPool({
			worker,
			...config.workers,
			reserve: reserveOf,
			log,
		})
		const loader = new Loader(join(home, 'plugins'), guard.refusal)
		const gateway = new Gateway({
			upgrade: await upgradeFor(engine, config, log, options),
			home,
			env,
			redactor,
			engine,
			pool,
			loader,
			log,
			readDesired(running) {
				const desired = settings.read(running)
				return only ? { ...desired, plugins: desired.plugins.filter(({ name }) => only.includes(name)) } : desired
			},
			reloaded() {
				if (stack.disposed) return
				if (gateway.status.configError() === null) settings.accept()
				followFolders()
				try {
					publish() // the port may have changed
				} catch (error) {
					log.error({ err: error }, 'run/gateway.json could not be updated')
				}
			},
			upgradeBegins() {
				stack.defer(() => removeRuntimeFile(home))
				publish()
			},
			checkResponses: options.checkResponses ?? false,
			listeners,
			...(member &&
				engine.tenure && {
					forwarding: { accept: member.accept(engine.tenure, pool), forwarded: () => member.forwarded() },
				}),
		})
		const publish = (): void =>
			writeRuntimeFile(home, {
				pid: process.pid,
				...(member && { role: 'working' }),
				...urlsOf(listeners),
				settings: settings.report(gateway.status.configError()),
				trouble: Object.fromEntries(
					gateway.status.plugins().flatMap(({ name, last_error }) => (last_error === null ? [] : [[name, last_error]])),
				),
			})
		let retry: NodeJS.Timeout | undefined
		/** On a full disk the gateway still starts, so that its data can be read and deleted. */
		const publishOrRetry = (isFirst = true): void => {
			try {
				publish()
			} catch (error) {
				if (isFirst && !isFullDisk((error as Error).cause)) throw error
				if (isFirst) log.error(`${messageOf(error)}; make room there. Until then svc does not find this gateway`)
				retry = setTimeout(publishOrRetry, RUNTIME_FILE_RETRY_MS, false).unref()
			}
		}
		created?.(gateway)
		stack.defer(() => gateway.stop(settings.latest().server.shutdown_grace_s * 1000))
		await gateway.start()
		// The file may have changed while this gateway waited for the data.
		if (gateway.status.configError() === null) settings.accept()

		// A refused change is already logged, reported as an event and shown by /readyz.
		const reload = (): void => void gateway.reload().catch(() => {})
		// Only if something has changed, since a reload also restarts failed plugins.
		const reloadOutdated = (): void => {
			if (settings.isOutdated()) reload()
			else void loader.isOutdated().then((isOutdated) => isOutdated && reload())
		}
		const watcher = stack.use(
			new Watcher([file, join(home, 'plugins')], {
				changed: reload,
				failed: (error) =>
					log.warn({ err: error }, 'a file or folder cannot be watched, so its changes apply at the next reload'),
				follows: reloadOutdated,
			}),
		)
		const followFolders = (): void => {
			const folders = gateway.status.plugins().flatMap(({ name }) => loader.folderOf(name) ?? [])
			watcher
				.follow([...folders, ...targetOf(file)])
				.catch((error: unknown) => log.error({ err: error }, 'a plugin folder or gateway.yaml could not be watched'))
		}
		followFolders()
		stack.defer(() => {
			clearTimeout(retry)
			removeRuntimeFile(home)
		})
		publishOrRetry()
		if (member && engine.tenure) await member.serves(engine.tenure)
		await watcher.ready()
		isWatched = true
		// The watcher has not seen changes that were made before it was ready.
		reloadOutdated()
		return {
			gateway,
			config,
			log,
			...(engine.lost && { lost: engine.lost }),
			async firstAgent() {
				for await (const { name } of agentsIn(engine.store)) return name
				return undefined
			},
			stop: () => stack.disposeAsync(),
		}
	} catch (error) {
		await stack.disposeAsync()
		throw error
	}
}

/** The target of a symbolic link, empty for a file. It is watched as well: the watch of a link ends when its target is removed. */
function targetOf(file: string): string[] {
	try {
		return [resolve(realpathSync(dirname(file)), readlinkSync(file))]
	} catch {
		return []
	}
}

/** Undefined for an engine that other gateways cannot share. */
async function openMember(options: MemberOptions): Promise<Member | undefined> {
	const { url } = options.config.store
	return url === null ? undefined : (await engineFor(url)).openMember?.(options)
}

/** Null if the engine has no format, or another gateway has to do the upgrade. */
async function upgradeFor(
	engine: Engine,
	config: Config,
	log: Logger,
	{ home, noBackup, upgrading }: BootOptions,
): Promise<Upgrade | null> {
	const { format: data } = engine
	if (!data || !((await engine.mayUpgrade?.()) ?? true)) return null
	return upgradeOf({
		engine,
		data,
		log,
		folder: config.store.path,
		min_free_mib: config.store.min_free_mib,
		// Data on other servers is backed up with their own tools.
		backup: noBackup || config.store.url !== null ? null : backupOf(home, config),
		...(upgrading && { onProgress: upgrading }),
	})
}

/** Follows the settings under `backups`. The plugin that has these settings need not be switched on. */
function backupOf(home: string, config: Config): Omit<BackupRequest, 'snapshots' | 'trigger'> {
	const { folder = join(home, 'backups'), include_key = true } = (valueAt(config, 'backups') ??
		{}) as Partial<BackupRequest>
	return { home, folder, include_key, min_free_mib: config.store.min_free_mib }
}

function urlsOf(listeners: Listeners): Pick<RuntimeFile, 'url' | 'legacy_url'> {
	return { url: listeners.url('main'), legacy_url: listeners.url('legacy') }
}
