/**
 * Moves from one generation to the next. New instances start beside the running ones; one assignment makes the next generation
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
	/** Called in the same turn in which a generation becomes current. */
	becameCurrent: (generation: Generation) => void
	/** A plugin does not run, or not as its files now are. */
	failed: (plugin: string, message: string, cause?: unknown) => void
}

export class Generations {
	current: Generation | null = null
	/** Why a wanted plugin does not run, or does not run as its files now are. */
	readonly failures = new Map<string, string>()
	/** Uncaught errors of plugins that are about to start: their code runs from its import on. */
	readonly #early = new Map<string, Instance['uncaught']>()
	/** Started for a generation that is not current yet. */
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

	/** Announces that this plugin's code is about to be imported, to be started by the next `apply`. */
	expect(plugin: string): void {
		if (!this.current?.instances.has(plugin)) this.#early.set(plugin, { message: '', count: 0 })
	}

	/** Records an uncaught error of this plugin. False if no such plugin runs or starts. */
	failing(plugin: string, message: string): boolean {
		const instance = this.#fresh.get(plugin) ?? this.current?.instances.get(plugin)
		const errors = instance?.uncaught ?? this.#early.get(plugin)
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
	 * Starts what is new, and makes the next generation current. `definitions` are in dependency order. A third-party plugin
	 * that does not start, or whose routes or tools conflict, is left out with those that need it; if an instance of it runs,
	 * that one keeps running. Throws, and changes nothing, if a built-in plugin fails.
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
				const instance = fresh ?? (before && (await this.#again(before, stopped)))
				if (instance) instances.push(instance)
			}
			next = await this.#buildWhatFits(instances, stopped)
		} catch (error) {
			await this.#rollBack(stopped)
			throw error
		} finally {
			this.#early.clear()
		}
		// Not before: what started may not fit, for the reason that is known already.
		for (const [name, { definition }] of next.instances)
			if (this.#fresh.has(name) && definitions.includes(definition)) this.failures.delete(name)
		this.#makeCurrent(next)
		const serving = new Set(next.instances.values())
		const retired = [...(old?.instances.values() ?? [])].filter((one) => !serving.has(one) && !stopped.includes(one))
		this.#retire(old, retired.toReversed())
	}

	/** A plugin does not run, or not as its files now are. It is logged and reported as an event, once for each reason. */
	fail(name: string, message: string, cause?: unknown): void {
		if (this.failures.get(name) !== message) this.#options.failed(name, message, cause)
		this.failures.set(name, message)
	}

	/** Releases every instance, last first, and waits until the last request has ended. */
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
	 * What `asker` reaches by a plugin's name: an instance that is about to serve sees those that will serve with it, and,
	 * while it starts, by its own name the one that it replaces.
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
		instance.uncaught = this.#early.get(name) ?? instance.uncaught
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

	/** The instance that ran until now, whose successor failed. Undefined if it had to stop and does not start again. */
	async #again(before: Instance, stopped: readonly Instance[]): Promise<Instance | undefined> {
		if (!stopped.includes(before)) return before
		const why = this.failures.get(before.name)
		const again = await this.#start(before.definition)
		// The operator can fix the successor, so its error is reported.
		if (why !== undefined) this.failures.set(before.name, why)
		return again
	}

	/** Whether it needs a plugin that is left out; then it is left out too, for that reason. */
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
	 * Leaves out third-party plugins whose routes or tools conflict, the new ones first: running plugins take precedence
	 * over those to be added. Throws if the built-in ones conflict with each other.
	 */
	async #buildWhatFits(instances: readonly Instance[], stopped: readonly Instance[]): Promise<Generation> {
		try {
			return await this.#build(instances)
		} catch (error) {
			if (instances.every(isBuiltIn)) throw error
		}
		const runs = (one: Instance): boolean => this.current?.instances.get(one.name) === one
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
			const again = before && (await this.#again(before, stopped))
			if (again && !(await fits(again)) && again !== before) await this.#discard(again)
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

	/** Stops the instances that were just started. An exclusive instance that had to stop is started again, with a generation that has it. */
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
