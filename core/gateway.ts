/**
 * Owns the few long-lived things (store, events, run pool, sockets) and the generations of plugins. `reload` applies the
 * configuration and the plugins' files as they are now, or changes nothing and says why.
 */
import { within } from './deadline.ts'
import { define, planItem, withoutOrphans } from './definition.ts'
import type { Locate } from './definition.ts'
import { isFault, messageOf } from './errors.ts'
import { openEventBus } from './events.ts'
import type { EventBus } from './events.ts'
import { Front } from './front.ts'
import type { ListenAt } from './front.ts'
import { Generations } from './generations.ts'
import type { Definition, Host } from './instance.ts'
import type { Loader } from './loader.ts'
import type { Logger } from './log.ts'
import type { Redactor } from './redactor.ts'
import { isIdle, plan } from './plan.ts'
import type { Plan } from './plan.ts'
import type { Address } from './plugin.ts'
import type { RunPool } from './runs.ts'
import type { GatewayState, GatewayStatus } from './status.ts'
import type { Engine } from './store/ports.ts'
import { redactingQueue, redactingStore } from './store/redacting.ts'

/** One plugin that the operator wants. */
export interface WantedPlugin {
	name: string
	builtIn: boolean
	/** Folder of a third party's plugin, where it is not the home's plugins/<name>. */
	path?: string
	settings: Record<string, unknown>
}

/** What the operator wants, read from the configuration. */
export interface Wish {
	plugins: WantedPlugin[]
	listen: Record<Address, ListenAt>
	workers: { threads: number; runs_per_thread: number }
	locate: Locate
}

export interface GatewayOptions {
	version: string
	home: string
	env: Readonly<NodeJS.ProcessEnv>
	/** The one that the log has. */
	redactor: Redactor
	engine: Engine
	pool: RunPool
	loader: Loader
	log: Logger
	/** Reads the configuration; throws `config_invalid`. `running`: in place of one that is in force. */
	readWish: (running: boolean) => Wish
	/** Called after each reload, whether the change was taken over or refused. */
	reloaded?: () => void
	/** For tests: compare every answer with its route's schema. */
	checkResponses: boolean
}

export interface ReloadResult {
	changed: boolean
	generation: number
}

export class Gateway {
	readonly events: EventBus
	readonly status: GatewayStatus
	readonly #options: GatewayOptions
	readonly #log: Logger
	readonly #bus: EventBus & Disposable
	readonly #front: Front
	readonly #generations: Generations
	readonly #host: Host
	#state: GatewayState = 'starting'
	/** The wish in force, but for its plugins. */
	#rest = ''
	#configError: string | null = null
	#reloading: Promise<ReloadResult> | null = null
	#next: Promise<ReloadResult> | null = null
	/** The last event of its own could not be written. */
	#isMute = false

	constructor(options: GatewayOptions) {
		const { engine, pool, log, redactor } = options
		this.#options = options
		this.#log = log
		this.#front = new Front(log)
		this.#bus = openEventBus(engine.log, log, redactor)
		this.events = this.#bus
		this.#generations = new Generations({
			log,
			redactor,
			checkResponses: options.checkResponses,
			becameCurrent: (generation) => (this.#front.current = generation),
			failed: (plugin, message) => this.#pluginFailed(plugin, message),
		})
		const generations = this.#generations
		this.status = {
			version: options.version,
			home: options.home,
			started_at: new Date().toISOString(),
			state: () => this.#state,
			generation: () => generations.number,
			plugins: () => generations.status(),
			configError: () => this.#configError,
			storeTrouble: () => engine.trouble(),
			storeSpace: () => engine.space?.() ?? null,
			openRequests: () => this.#front.open,
			url: (address) => this.#front.url(address),
		}
		this.#host = {
			log,
			store: redactingStore(engine.store, redactor),
			queue: redactingQueue(engine.queue, redactor),
			snapshots: engine.snapshots,
			events: this.#bus,
			pool,
			env: options.env,
			redactor,
			toolbox: { list: async (agent) => (await generations.current?.tools(agent)) ?? [] },
			gateway: this.status,
			lookup: (name, asker) => generations.lookup(name, asker),
			extensions: (point) => generations.current?.extensions(point) ?? [],
		}
		this.#bus.subscribe({}, ({ event }) => generations.current?.handle(event))
	}

	/** The first generation, then the sockets. Throws where a built-in plugin does not start. */
	async start(): Promise<void> {
		await this.#apply(this.#options.readWish(false), true)
		this.#state = 'ready'
		void this.#say('gateway.started', { version: this.#options.version, generation: this.#generations.number })
	}

	/** One at a time; calls meanwhile share the next one. Throws where the change is refused. */
	reload(): Promise<ReloadResult> {
		if (!this.#reloading) {
			this.#reloading = this.#reloadOnce().finally(() => {
				this.#reloading = null
				this.#options.reloaded?.()
			})
			return this.#reloading
		}
		const again = (): Promise<ReloadResult> => {
			this.#next = null
			return this.reload()
		}
		this.#next ??= this.#reloading.then(again, again)
		return this.#next
	}

	/** Drains for at most `graceMs`; runs that are then still under way go on after the next start. */
	async stop(graceMs: number): Promise<void> {
		if (this.#state === 'draining') return
		this.#state = 'draining'
		// Its failure was told to whoever asked for it.
		if (this.#reloading) await within(graceMs, 'the reload', this.#reloading).catch(() => {})
		await this.#say('gateway.stopping', {})
		await this.#options.pool.idle(graceMs)
		const closed = this.#front.close(graceMs)
		await this.#generations.stop()
		await closed
		await this.#options.pool[Symbol.asyncDispose]()
		this.#bus[Symbol.dispose]()
	}

	async #reloadOnce(): Promise<ReloadResult> {
		const generations = this.#generations
		if (this.#state === 'draining') return { changed: false, generation: generations.number }
		try {
			const changed = await this.#apply(this.#options.readWish(true), false)
			const isMended = this.#configError !== null
			this.#configError = null
			if (changed || isMended) {
				this.#log.info(
					{ generation: generations.number },
					changed ? 'the changed settings are in force' : 'the settings are in order again',
				)
				void this.#say('config.reloaded', { generation: generations.number })
			}
			return { changed, generation: generations.number }
		} catch (error) {
			const message = messageOf(error)
			this.#configError = message
			this.#log.error(
				{ generation: generations.number },
				`the change is refused, the last good configuration stays in force: ${message}`,
			)
			await this.#emit('config.rejected', { message, ...(isFault(error) && error.errors && { errors: error.errors }) })
			throw error
		}
	}

	/** False where nothing had to change. */
	async #apply(wish: Wish, booting: boolean): Promise<boolean> {
		const definitions = await this.#define(wish, booting)
		const todo = plan(
			this.#generations.instances().map((one) => planItem(one.definition)),
			definitions.map(planItem),
		)
		const rest = JSON.stringify([wish.listen, wish.workers])
		const pluginsChange = booting || !isIdle(todo)
		if (!pluginsChange && rest === this.#rest) return false

		if (pluginsChange) await this.#generations.apply(todo, definitions, this.#host, booting)
		await this.#front.listen('main', wish.listen.main)
		await this.#front.listen('legacy', this.#generations.current?.servers.legacy ? wish.listen.legacy : null)
		this.#options.pool.resize(wish.workers)
		this.#rest = rest
		this.#tell(todo, booting)
		return true
	}

	/** The definition of each wanted plugin that has usable code. Throws `config_invalid` for wrong settings. */
	async #define(wish: Wish, booting: boolean): Promise<Definition[]> {
		const { failures } = this.#generations
		const wanted = new Set(wish.plugins.map((one) => one.name))
		for (const name of failures.keys()) if (!wanted.has(name)) failures.delete(name)
		const definitions: Definition[] = []
		for (const { name, builtIn, path, settings } of wish.plugins) {
			const failed = (error: unknown): void => {
				const message = messageOf(error)
				if (failures.get(name) !== message) this.#pluginFailed(name, message, error)
				failures.set(name, message)
			}
			try {
				const loaded = await this.#options.loader.load(name, builtIn, path)
				definitions.push(define(settings, loaded, wish.locate))
				if (failures.delete(name)) this.#log.info({ plugin: name }, 'the plugin is in order again')
			} catch (error) {
				// Broken code of a third party is that plugin's own trouble: what runs of it runs on, and the others' changes apply.
				// Wrong settings are the operator's, and refuse the whole change; at the start that would leave nobody anything.
				if (builtIn) throw error
				failed(error)
				if (!booting && !isFault(error, 'plugin_invalid')) throw error
				const running = this.#generations.current?.instances.get(name)
				if (running) definitions.push(running.definition)
			}
		}
		return booting ? withoutOrphans(definitions, failures) : definitions
	}

	#pluginFailed(plugin: string, message: string, cause?: unknown): void {
		this.#log.error({ plugin, ...(cause instanceof Error && { err: cause }) }, message)
		void this.#say('plugin.failed', { plugin, message })
	}

	#tell(todo: Plan, booting: boolean): void {
		const generation = this.#generations.number
		const tell = (type: string, names: Iterable<string>): void => {
			for (const plugin of names) {
				if (this.#generations.failures.has(plugin)) continue
				if (!booting) this.#log.info({ plugin, generation }, type.replace('.', ' '))
				void this.#say(type, { plugin, generation })
			}
		}
		tell('plugin.stopped', todo.stop)
		tell('plugin.started', todo.start)
		tell('plugin.reloaded', todo.replace)
	}

	/** For events that must not fail what they tell of, also where a full disk takes none: the log tells of the first one only. */
	async #say(event_type: string, payload: Record<string, unknown>): Promise<void> {
		try {
			await this.#emit(event_type, payload)
			this.#isMute = false
		} catch (error) {
			if (!this.#isMute) this.#log.warn({ event_type }, `events cannot be written: ${messageOf(error)}`)
			this.#isMute = true
		}
	}

	#emit(event_type: string, payload: Record<string, unknown>): Promise<void> {
		return this.#bus.emit({ event_type, payload })
	}
}
