/**
 * Moves from one generation to the next. New instances start while the old ones run; one assignment makes the next generation
 * current; then the old one drains and instances that are no longer wanted are released. A failure before that assignment
 * leaves everything running as it was.
 */
import { messageOf } from '../errors.ts'
import { Generation } from './generation.ts'
import { Instance } from './instance.ts'
import type { Host } from './instance.ts'
import { needsFailed } from './plan.ts'
import type { Definition } from './plan.ts'
import type { PluginHoldings, PluginStatus } from '../status.ts'

export interface GenerationsOptions extends Pick<Host, 'shared' | 'uncaught'> {
	checkResponses: boolean
	/** Called in the turn of the event loop in which a generation becomes current. */
	becameCurrent: (generation: Generation) => void
	/** A plugin does not run, or runs with an older version of its files. */
	failed: (plugin: string, message: string, cause?: unknown) => void
}

export class Generations {
	current: Generation | null = null
	/** Why a wanted plugin does not run, or runs with an older version of its files. */
	readonly failures = new Map<string, string>()
	/** Uncaught errors of plugins that have no instance yet: their code runs from its import on. */
	readonly #errorsBeforeStart = new Map<string, Instance['uncaught']>()
	/** Instances for a generation that is not current yet. */
	readonly #fresh = new Map<string, Instance>()
	readonly #retiring = new Set<Promise<void>>()
	readonly #options: GenerationsOptions
	readonly #host: Host

	constructor(options: GenerationsOptions) {
		this.#options = options
		this.#host = {
			shared: options.shared,
			uncaught: options.uncaught,
			lookup: (name, asker) => this.#lookup(name, asker),
			extensions: (point) => this.current?.extensions(point) ?? [],
		}
	}

	get number(): number {
		return this.current?.number ?? 0
	}

	/** To be called before a plugin's code is imported for the next `apply`, so that its uncaught errors are counted. */
	expect(plugin: string): void {
		if (!this.current?.instances.has(plugin)) this.#errorsBeforeStart.set(plugin, { message: '', count: 0 })
	}

	/** Records an uncaught error of this plugin. False if no such plugin runs or starts. */
	failing(plugin: string, message: string): boolean {
		const instance = this.#fresh.get(plugin) ?? this.current?.instances.get(plugin)
		const errors = instance?.uncaught ?? this.#errorsBeforeStart.get(plugin)
		if (!errors) return false
		errors.message = message
		errors.count++
		return true
	}

	/** In dependency order. */
	instances(): Instance[] {
		return [...(this.current?.instances.values() ?? [])]
	}

	/**
	 * Starts new and changed plugins, and makes the next generation current. `definitions` are in dependency order. A third-party
	 * plugin that does not start, or whose routes or tools conflict, fails together with the plugins that need it. If an
	 * older instance of it runs, that one keeps running. Throws, and changes nothing, if a built-in plugin fails.
	 */
	async apply(definitions: readonly Definition[]): Promise<void> {
		const old = this.current
		const stopped: Instance[] = []
		let next: Generation
		try {
			const instances: Instance[] = []
			for (const definition of definitions) {
				const { name, exclusive } = definition.plugin
				if (this.#lacksNeed(definition, instances)) continue
				const before = old?.instances.get(name)
				if (before?.definition.fingerprint === definition.fingerprint) {
					instances.push(before)
					continue
				}
				if (before && exclusive) {
					await before.stop()
					stopped.push(before)
				}
				const fresh = await this.#start(definition)
				const instance = fresh ?? (before && (await this.#resume(before, stopped)))
				if (instance) instances.push(instance)
			}
			next = await this.#buildWithoutConflicts(instances, stopped)
		} catch (error) {
			await this.#rollBack(stopped)
			throw error
		} finally {
			this.#errorsBeforeStart.clear()
		}
		// Only now: a plugin that started may still fail, for the same reason as before.
		for (const [name, { definition }] of next.instances)
			if (this.#fresh.has(name) && definitions.includes(definition)) this.failures.delete(name)
		this.#makeCurrent(next)
		const serving = new Set(next.instances.values())
		const retired = [...(old?.instances.values() ?? [])].filter((one) => !serving.has(one) && !stopped.includes(one))
		this.#retire(old, retired.toReversed())
	}

	/** Records that a plugin does not run, or runs with older files. Each new reason is logged and reported as an event. */
	fail(name: string, message: string, cause?: unknown): void {
		if (this.failures.get(name) !== message) this.#options.failed(name, message, cause)
		this.failures.set(name, message)
	}

	/** Releases all instances in reverse order, and waits for the requests in flight. */
	async stop(): Promise<void> {
		for (const instance of this.instances().toReversed()) await instance.stop()
		await Promise.all(this.#retiring)
		await this.current?.drain()
	}

	/** By name. */
	status(): PluginStatus[] {
		const names = new Set([...(this.current?.instances.keys() ?? []), ...this.failures.keys()])
		return [...names].toSorted().map((name) => {
			const instance = this.current?.instances.get(name)
			const failure = this.failures.get(name) ?? null
			const none = { version: null, generation: null, source: null, since: null, contract: null }
			if (!instance) return { ...none, name, state: 'failed', last_error: failure }
			const { definition, uncaught, trouble } = instance
			const times = uncaught.count > 1 ? ` (${uncaught.count} so far, this is the newest)` : ''
			return {
				name,
				version: definition.plugin.version ?? null,
				state: uncaught.count > 0 ? 'failing' : 'running',
				last_error: failure ?? (uncaught.count > 0 ? uncaught.message + times : trouble),
				generation: instance.servingSince,
				source: definition.source,
				since: instance.since,
				contract: definition.plugin.contract ?? null,
			}
		})
	}

	/** Null for a plugin that does not run. */
	holdings(plugin: string): PluginHoldings | null {
		const { current } = this
		const instance = current?.instances.get(plugin)
		return current && instance ? { routes: current.routesOf(plugin), ...instance.holdings() } : null
	}

	/**
	 * The instance that `asker` gets for a plugin's name. An instance of the next generation gets the other instances of that
	 * generation. While it starts, its own name means the instance that it replaces.
	 */
	#lookup(name: string, asker: Instance): Instance | undefined {
		const isFresh = this.#fresh.get(asker.name) === asker
		const fresh = isFresh ? this.#fresh.get(name) : undefined
		return (fresh === asker && !asker.isStarted ? undefined : fresh) ?? this.current?.instances.get(name)
	}

	/** Undefined for a third-party plugin that does not start. Throws for a built-in one. */
	async #start(definition: Definition): Promise<Instance | undefined> {
		const instance = new Instance(definition, this.#host)
		const { name } = instance
		instance.uncaught = this.#errorsBeforeStart.get(name) ?? instance.uncaught
		this.#fresh.set(name, instance)
		try {
			await instance.start()
			return instance
		} catch (error) {
			this.#fresh.delete(name)
			if (isBuiltIn(instance)) throw error
			const { trouble } = definition
			this.fail(name, trouble === undefined ? messageOf(error) : `${messageOf(error)}; ${trouble}`, error)
			return undefined
		}
	}

	/** The previous instance of a plugin whose new one failed, restarted if it was stopped. Undefined if it does not start. */
	async #resume(before: Instance, stopped: readonly Instance[]): Promise<Instance | undefined> {
		if (!stopped.includes(before)) return before
		const reason = this.failures.get(before.name)
		const restarted = await this.#start(before.definition)
		// The error of the new instance is reported, since the operator can fix that.
		if (reason !== undefined) this.failures.set(before.name, reason)
		return restarted
	}

	/** Whether it needs a plugin that failed. Records that as the reason why it fails, too. */
	#lacksNeed({ plugin }: Definition, among: readonly Instance[]): boolean {
		const missing = plugin.needs?.find((need) => !among.some(({ name }) => name === need))
		if (missing === undefined) return false
		this.fail(plugin.name, needsFailed(plugin.name, missing))
		return true
	}

	#build(instances: readonly Instance[]): Promise<Generation> {
		const { shared, checkResponses } = this.#options
		const { log, redactor } = shared
		return Generation.build({ number: this.number + 1, instances, log, redactor, checkResponses })
	}

	/**
	 * Leaves out third-party plugins whose routes or tools conflict. Running plugins take precedence over new ones. Throws if
	 * built-in plugins conflict with each other.
	 */
	async #buildWithoutConflicts(instances: readonly Instance[], stopped: readonly Instance[]): Promise<Generation> {
		try {
			return await this.#build(instances)
		} catch (error) {
			if (instances.every(isBuiltIn)) throw error
		}
		const runs = (instance: Instance): boolean => this.current?.instances.get(instance.name) === instance
		const fitting = instances.filter(isBuiltIn)
		const fits = async (instance: Instance): Promise<boolean> => {
			try {
				const trial = await this.#build([...fitting, instance])
				await trial.drain()
				fitting.push(instance)
				return true
			} catch (error) {
				this.fail(instance.name, messageOf(error), error)
				return false
			}
		}
		const others = instances.filter((one) => !isBuiltIn(one)).toSorted((a, b) => Number(runs(b)) - Number(runs(a)))
		for (const instance of others) {
			if ((await fits(instance)) || runs(instance)) continue
			await this.#discard(instance)
			const before = this.current?.instances.get(instance.name)
			const resumed = before && (await this.#resume(before, stopped))
			if (resumed && !(await fits(resumed)) && resumed !== before) await this.#discard(resumed)
		}
		const kept: Instance[] = []
		for (const { name } of instances) {
			const instance = fitting.find((one) => one.name === name)
			if (!instance) continue
			if (!this.#lacksNeed(instance.definition, kept)) kept.push(instance)
			else if (!runs(instance)) await this.#discard(instance)
		}
		return this.#build(kept)
	}

	async #discard(instance: Instance): Promise<void> {
		await instance.stop()
		this.#fresh.delete(instance.name)
	}

	#makeCurrent(next: Generation): void {
		this.current = next
		this.#fresh.clear()
		this.#options.becameCurrent(next)
		for (const instance of next.instances.values()) instance.serve(next.number)
	}

	/** Stops the new instances. Exclusive instances that were stopped are started again, in a new generation. */
	async #rollBack(stopped: readonly Instance[]): Promise<void> {
		for (const instance of [...this.#fresh.values()].toReversed()) await instance.stop()
		this.#fresh.clear()
		const old = this.current
		if (!old || stopped.length === 0) return
		const instances: Instance[] = []
		for (const instance of old.instances.values()) {
			const restarted = (): Promise<Instance | undefined> => this.#start(instance.definition).catch(() => undefined)
			const again = stopped.includes(instance) ? await restarted() : instance
			if (again) instances.push(again)
			else
				this.#options.shared.log.error(
					{ plugin: instance.name },
					'the plugin was stopped for a change that failed, and its previous version does not start again',
				)
		}
		this.#makeCurrent(await this.#build(instances))
		this.#retire(old, [])
	}

	#retire(generation: Generation | null, instances: Instance[]): void {
		const work = async (): Promise<void> => {
			for (const instance of instances) await instance.stop()
			await generation?.drain()
		}
		const done = work()
			.catch((error: unknown) =>
				this.#options.shared.log.error({ err: error }, 'an old generation could not be stopped'),
			)
			.finally(() => this.#retiring.delete(done))
		this.#retiring.add(done)
	}
}

function isBuiltIn({ owner }: Instance): boolean {
	return owner === undefined
}
