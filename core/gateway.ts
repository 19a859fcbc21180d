/**
 * Owns what lives as long as the process (store, events, run pool, sockets) and the generations of plugins. `reload` applies
 * the current configuration and plugin files, or changes nothing and throws the reason.
 */
import { within } from './util/deadline.ts'
import { definitionsOf } from './host/definition.ts'
import type { DesiredState } from './host/desired-state.ts'
import { Fault, isFault, messageOf } from './errors.ts'
import { openEventBus } from './events/event-bus.ts'
import type { EventBus } from './events/event-bus.ts'
import type { Handler, Listeners, NewSockets } from './http/listeners.ts'
import { upgrading } from './http/upgrading.ts'
import type { Generation } from './host/generation.ts'
import { Generations } from './host/generations.ts'
import type { Loader } from './host/loader.ts'
import type { Logger } from './log/log.ts'
import type { Redactor } from './redactor/redactor.ts'
import { inOrder, isIdle, plan } from './host/plan.ts'
import type { Definition, Plan } from './host/plan.ts'
import type { Address, ListenAt } from './http/listening.ts'
import type { RunPool, RunPoolStats } from './runs/run-pool.ts'
import type { GatewayMember, GatewayState, GatewayStatus } from './status.ts'
import type { ClusterMember, Engine } from './store/ports.ts'
import { format } from './store/format.ts'
import { expectingAgents } from './store/agent-scope.ts'
import { redactingQueue, redactingStore } from './store/redacting.ts'
import type { Upgrade } from './upgrade/upgrade.ts'
import { version } from './version.ts'
import { ownName } from './util/own-name.ts'
import { callerNow } from './util/culprit.ts'
import { openUncaught } from './host/uncaught.ts'
import type { Uncaught } from './host/uncaught.ts'

export interface GatewayOptions {
	home: string
	env: Readonly<NodeJS.ProcessEnv>
	/** The log's redactor. */
	redactor: Redactor
	engine: Engine
	pool: RunPool
	loader: Loader
	log: Logger
	/** Reads the configuration; throws `config_invalid`. `running`: whether it replaces a configuration in force. */
	readDesired: (running: boolean) => DesiredState
	/** The upgrade of the home before plugins start; null if it needs none. */
	upgrade: Upgrade | null
	/** Called before the upgrade, once the gateway listens. */
	upgradeBegins?: () => void
	listeners: Listeners
	/** For gateways that share an engine: accepts and counts the requests that the others forward. */
	forwarding?: { accept: (handler: Handler) => Handler; forwarded: () => number }
	/** Called after each reload, whether the change was applied or refused. */
	reloaded?: () => void
	/** For tests: compare every answer with its route's schema. */
	checkResponses: boolean
}

/** How long executors may take to write the outcome of their runs, in milliseconds. */
const ENDING_MS = 2_000

export class Gateway {
	readonly events: EventBus & Disposable
	readonly status: GatewayStatus
	readonly #options: GatewayOptions
	readonly #log: Logger
	readonly #listeners: Listeners
	readonly #generations: Generations
	readonly #uncaught: Uncaught
	#state: GatewayState = 'starting'
	/** The desired state in force without its plugins, as JSON. */
	#rest = ''
	#publicUrl: string | null = null
	#configError: string | null = null
	#reloading: Promise<void> | null = null
	#next: Promise<void> | null = null
	/** The last of the gateway's own events could not be written. */
	#isMute = false
	/** How often a restart of each plugin was requested; part of its fingerprint. */
	#restarts: ReadonlyMap<string, number> = new Map()
	/** Plugins to restart with the next reload: one in progress may already have read the settings. */
	#toRestart: string[] = []

	constructor(options: GatewayOptions) {
		const { engine, env, pool, log, redactor } = options
		this.#options = options
		this.#log = log
		this.#listeners = options.listeners
		const records = expectingAgents(engine)
		this.events = openEventBus(records.log, log, redactor)
		this.status = {
			version,
			home: options.home,
			started_at: new Date().toISOString(),
			state: () => this.#state,
			generation: () => this.#generations.number,
			plugins: () => this.#generations.status(),
			holdings: (plugin) => this.#generations.holdings(plugin),
			configError: () => this.#configError,
			storeTrouble: () => engine.trouble(),
			storeSpace: () => engine.space?.() ?? null,
			dataFormat: () => engine.format?.mark().format ?? format,
			reload: (plugin) => this.#reloadPlugin(plugin),
			storeCluster: () => engine.remote?.() ?? null,
			gateways: async () =>
				withThreads((await engine.members?.()) ?? [{ name: ownName, version, format, works: true }], pool.stats()),
			lentThreads: () => (options.forwarding ? pool.stats().lent : null),
			forwardedRequests: () => options.forwarding?.forwarded() ?? null,
			openRequests: () => this.#listeners.openRequests,
			uncaughtErrors: () => this.#uncaught.count,
			url: (address) => this.#listeners.url(address),
			publicUrl: () => this.#publicUrl?.replace(/\/+$/, '') ?? this.#listeners.url('main'),
		}
		this.#generations = new Generations({
			shared: {
				env,
				log,
				redactor,
				store: redactingStore(records.store, redactor),
				events: this.events,
				queue: redactingQueue(engine.queue, redactor),
				snapshots: engine.snapshots,
				pool,
				toolbox: { list: async (agent) => (await this.#generations.current?.tools(agent)) ?? [] },
				gateway: this.status,
			},
			checkResponses: options.checkResponses,
			becameCurrent: (generation) => (this.#listeners.current = options.forwarding?.accept(generation) ?? generation),
			failed: (plugin, message, cause) => {
				log.error({ plugin, ...(cause instanceof Error && { err: cause }) }, message)
				void this.#emit('plugin.failed', { plugin, message })
			},
			uncaught: (error, plugin) => this.#uncaught.report(error, plugin),
		})
		this.#uncaught = openUncaught({
			log,
			failing: (plugin, message) => this.#generations.failing(plugin, message),
			emit: (event_type, payload) => void this.#emit(event_type, payload),
		})
		this.events.subscribe({}, ({ event }) => this.#generations.current?.handle(event))
	}

	/** The current generation; null before the start. */
	get generation(): Generation | null {
		return this.#generations.current
	}

	/**
	 * Reports an uncaught error of this process in the log, as an event and in the status, at most once a minute each: for the
	 * plugin that threw it, or for the gateway itself. Never throws.
	 */
	uncaught(error: unknown): void {
		this.#uncaught.report(error)
	}

	/** Called when the process exits: if a plugin ended it, nothing else reports that. */
	exits(code: number): void {
		const owner = callerNow()
		if (owner === undefined) return
		const call = new Error('the process exits') // its stack shows who called process.exit
		const advice = 'throw an error in place of this call, or switch the plugin off in gateway.yaml'
		this.#log.fatal(
			{ err: call, plugin: owner },
			`plugin "${owner}" ended the gateway by process.exit(${code}); ${advice}`,
		)
	}

	/**
	 * Upgrades the home, starts the first generation and listens. Throws if the upgrade or a built-in plugin fails, or if an
	 * address is not available.
	 */
	async start(): Promise<void> {
		const desired = this.#options.readDesired(false)
		await this.#upgrade(desired)
		await this.#apply(desired, true)
		this.#state = 'ready'
		void this.#emit('gateway.started', { version, generation: this.#generations.number })
	}

	/** One reload runs at a time; calls made meanwhile share the next one. Throws if the change is refused. */
	reload(): Promise<void> {
		if (!this.#reloading) {
			this.#reloading = this.#reloadOnce().finally(() => {
				this.#reloading = null
				this.#options.reloaded?.()
			})
			return this.#reloading
		}
		const again = (): Promise<void> => {
			this.#next = null
			return this.reload()
		}
		this.#next ??= this.#reloading.then(again, again)
		return this.#next
	}

	/** Drains for at most `graceMs`; runs still in progress continue after the next start. */
	async stop(graceMs: number): Promise<void> {
		if (this.#state === 'draining') return
		const hasServed = this.#state === 'ready'
		this.#state = 'draining'
		// The caller of the reload has received its error.
		if (this.#reloading) await within(graceMs, 'the reload', this.#reloading).catch(() => {})
		// A start that was refused leaves the data as it is. A cluster whose servers are gone does not answer.
		if (hasServed) await within(ENDING_MS, 'the store', this.#emit('gateway.stopping', {})).catch(() => {})
		const { pool } = this.#options
		await pool.idle(graceMs)
		const closed = this.#listeners.close(graceMs)
		// Before the plugins: a run that continued without its tools would get wrong results.
		await pool[Symbol.asyncDispose]()
		await pool.idle(ENDING_MS)
		await this.#generations.stop()
		await closed
		this.events[Symbol.dispose]()
	}

	/** Health probes show its progress. */
	async #upgrade(desired: DesiredState): Promise<void> {
		const { upgrade, upgradeBegins } = this.#options
		if (!upgrade) return
		this.#state = 'migrating'
		;(await this.#listen({ main: desired.listen.main }, desired)).take()
		this.#listeners.current = upgrading(this.status, () => upgrade.progress())
		upgradeBegins?.()
		await upgrade.run()
		this.#listeners.current = null
		this.#state = 'starting'
	}

	async #reloadPlugin(plugin: string): Promise<void> {
		const known = this.status.plugins().map(({ name }) => name)
		if (!known.includes(plugin))
			throw new Fault('not_found', `no plugin "${plugin}" is switched on; these are: ${known.join(', ')}`)
		this.#toRestart.push(plugin)
		await this.reload()
	}

	async #reloadOnce(): Promise<void> {
		const generations = this.#generations
		if (this.#state === 'draining') return
		const before = this.#restarts
		const restarts = new Map(before)
		for (const plugin of new Set(this.#toRestart.splice(0))) restarts.set(plugin, (restarts.get(plugin) ?? 0) + 1)
		this.#restarts = restarts
		try {
			const changed = await this.#apply(this.#options.readDesired(true), false)
			const isFixed = this.#configError !== null
			this.#configError = null
			if (!changed && !isFixed) return
			this.#log.info(
				{ generation: generations.number },
				changed ? 'the changed settings are in force' : 'the settings are valid again',
			)
			void this.#emit('config.reloaded', { generation: generations.number })
		} catch (error) {
			this.#restarts = before
			const message = messageOf(error)
			this.#configError = message
			this.#log.error(
				{ generation: generations.number },
				`the change is refused, the last good configuration stays in force: ${message}`,
			)
			const payload = { message, ...(isFault(error) && error.errors && { errors: error.errors }) }
			await this.#emit('config.rejected', payload)
			throw error
		}
	}

	/** Returns false if nothing had to change. */
	async #apply(desired: DesiredState, booting: boolean): Promise<boolean> {
		const definitions = await this.#define(desired, booting)
		const running = this.#generations.instances().map((one) => one.definition)
		const changes = plan(running, definitions)
		const rest = JSON.stringify([desired.listen, desired.workers, desired.log_level, desired.public_url])
		const pluginsChange = booting || !isIdle(changes)
		if (!pluginsChange && rest === this.#rest) return false

		const hasLegacy = (): boolean => Boolean(this.#generations.current?.servers.legacy)
		const wantsLegacy = hasLegacy() || definitions.some(({ plugin }) => plugin.legacy)
		// Before anything else changes: if an address is not available, nothing has changed yet.
		const sockets = await this.#listen(
			{ main: desired.listen.main, ...(wantsLegacy && { legacy: desired.listen.legacy }) },
			desired,
		)
		try {
			if (pluginsChange) await this.#generations.apply(definitions)
			sockets.take()
		} catch (error) {
			sockets.drop()
			const cause = error instanceof Error ? error.cause : undefined
			// A built-in plugin may find out only at its start that a setting cannot be used.
			throw isFault(cause, 'config_invalid') && cause.errors ? desired.refuse(cause.errors) : error
		}
		if (!hasLegacy()) this.#listeners.leave('legacy')
		else if (!wantsLegacy) (await this.#listen({ legacy: desired.listen.legacy }, desired)).take()
		this.#options.pool.resize(desired.workers)
		this.#log.level = desired.log_level
		this.#publicUrl = desired.public_url
		this.#rest = rest
		this.#report(changes, booting)
		return true
	}

	/**
	 * Returns the definitions of the wanted plugins that can be started, in dependency order. A mistake in gateway.yaml refuses
	 * the whole change. At the start there would then be no gateway, so there a mistake about a third-party plugin only leaves
	 * out that plugin. Broken code of a third-party plugin never affects others: its running instance stays, and the changes of
	 * other plugins apply.
	 */
	async #define(desired: DesiredState, booting: boolean): Promise<Definition[]> {
		const generations = this.#generations
		for (const { name } of desired.plugins) generations.expect(name)
		const found = await definitionsOf(desired.plugins, this.#options.loader)
		const { problems, broken } = found
		const definitions = found.definitions.map((one) => this.#restarted(one))
		const builtIn = new Set(desired.plugins.flatMap((one) => (one.builtIn ? one.name : [])))
		const failed = new Map<string, string>()
		for (const [plugin, own] of problems) if (!builtIn.has(plugin)) failed.set(plugin, desired.refuse(own).message)
		for (const [plugin, error] of broken) failed.set(plugin, messageOf(error))
		for (const [name, message] of failed) generations.fail(name, message, broken.get(name))
		if ([...problems.keys()].some((name) => !booting || builtIn.has(name)))
			throw desired.refuse([...problems.values()].flat())

		const running = new Map(generations.instances().map(({ name, definition }) => [name, definition]))
		const { order, orphans, cycles } = inOrder([
			...definitions,
			...[...broken.keys()].flatMap((name) => running.get(name) ?? []),
		])
		const omitted = new Map([...orphans, ...cycles])
		for (const [name, message] of omitted) generations.fail(name, message)
		for (const name of generations.failures.keys()) {
			if (failed.has(name) || omitted.has(name)) continue
			const definition = order.find(({ plugin }) => plugin.name === name)
			// A plugin that is started again reports its own result.
			if (definition && definition.fingerprint !== running.get(name)?.fingerprint) continue
			generations.failures.delete(name)
			if (definition) this.#log.info({ plugin: name }, 'the plugin has recovered')
		}
		return order
	}

	/** A new fingerprint makes a plugin restart although its code and settings are unchanged. */
	#restarted(definition: Definition): Definition {
		const times = this.#restarts.get(definition.plugin.name)
		return times === undefined ? definition : { ...definition, fingerprint: `${definition.fingerprint} ${times}` }
	}

	async #listen(at: Partial<Record<Address, ListenAt>>, desired: DesiredState): Promise<NewSockets> {
		try {
			return await this.#listeners.open(at)
		} catch (error) {
			throw isFault(error, 'unavailable') && error.errors ? desired.refuse(error.errors, 'unavailable') : error
		}
	}

	#report({ stop, start, replace }: Plan, booting: boolean): void {
		const generation = this.#generations.number
		const report = (type: string, names: Iterable<string>): void => {
			for (const plugin of names) {
				if (this.#generations.failures.has(plugin)) continue
				if (!booting) this.#log.info({ plugin, generation }, type.replace('.', ' '))
				void this.#emit(type, { plugin, generation })
			}
		}
		report('plugin.stopped', stop)
		report('plugin.started', start)
		report('plugin.reloaded', replace)
	}

	/** Never throws: a full disk must not fail the operation that the event reports. Logs only the first of successive failures. */
	async #emit(event_type: string, payload: Record<string, unknown>): Promise<void> {
		try {
			await this.events.emit({ event_type, payload })
			this.#isMute = false
		} catch (error) {
			if (!this.#isMute) this.#log.warn({ event_type }, `events cannot be written: ${messageOf(error)}`)
			this.#isMute = true
		}
	}
}

/** `stats`: of the working gateway. */
function withThreads(members: ClusterMember[], { threads, active, lent }: RunPoolStats): GatewayMember[] {
	const elsewhere = lent.reduce((sum, { runs }) => sum + runs, 0)
	const own = { threads, runs: active - elsewhere }
	const none = { threads: 0, runs: 0 }
	return members.map((member) => {
		const { threads: its, runs } = member.works ? own : (lent.find(({ gateway }) => gateway === member.name) ?? none)
		return { ...member, threads: its, runs }
	})
}
