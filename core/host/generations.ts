/**
 * Moves from one generation to the next. New instances start beside the running ones; one assignment makes the next generation
 * current; then the old one drains and instances that are no longer wanted are released. A failure before that assignment
 * leaves everything running as it was.
 */
import { needsFailed } from './definition.ts'
import { messageOf } from '../errors.ts'
import { Generation } from './generation.ts'
import { Instance } from './instance.ts'
import type { Definition, Host } from './instance.ts'
import { BUILT_IN } from './loader.ts'
import type { Logger } from '../log/log.ts'
import type { Plan } from './plan.ts'
import type { Redactor } from '../redactor/redactor.ts'
import type { PluginStatus } from '../status.ts'

export interface GenerationsOptions {
	log: Logger
	redactor: Redactor
	checkResponses: boolean
	/** Called in the same turn in which a generation becomes current. */
	becameCurrent: (generation: Generation) => void
	/** A plugin does not run, or not as its files now are. */
	failed: (plugin: string, message: string, cause?: unknown) => void
}

interface UncaughtErrors {
	/** The message of the newest. */
	message: string
	count: number
}

export class Generations {
	current: Generation | null = null
	/** Why a wanted plugin does not run, or does not run as its files now are. */
	readonly failures = new Map<string, string>()
	/** Errors that running plugins failed to catch. */
	readonly #uncaught = new WeakMap<Instance, UncaughtErrors>()
	/** The same for plugins that are about to start: their code runs from its import on. */
	readonly #early = new Map<string, UncaughtErrors>()
	readonly #options: GenerationsOptions
	/** Started for a generation that is not current yet. */
	readonly #fresh = new Map<string, Instance>()
	readonly #servingSince = new WeakMap<Instance, number>()
	readonly #retiring = new Set<Promise<void>>()

	constructor(options: GenerationsOptions) {
		this.#options = options
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
		const errors = instance ? (this.#uncaught.get(instance) ?? { message, count: 0 }) : this.#early.get(plugin)
		if (!errors) return false
		errors.message = message
		errors.count++
		if (instance) this.#uncaught.set(instance, errors)
		return true
	}

	/** In dependency order. */
	instances(): Instance[] {
		return [...(this.current?.instances.values() ?? [])]
	}

	/**
	 * What `asker` reaches by a plugin's name: an instance that is about to serve sees those that will serve with it, and,
	 * while it starts, by its own name the one that it replaces.
	 */
	lookup(name: string, asker: Instance): Instance | undefined {
		const isFresh = this.#fresh.get(asker.name) === asker
		const fresh = isFresh ? this.#fresh.get(name) : undefined
		return (fresh === asker && asker.state === 'starting' ? undefined : fresh) ?? this.current?.instances.get(name)
	}

	/**
	 * A third-party plugin that does not start, or whose routes or tools conflict, is left out with those that need it; if an
	 * instance of it runs, that one keeps running. Throws, and changes nothing, if a built-in plugin fails.
	 */
	async apply(todo: Plan, definitions: Definition[], host: Host): Promise<void> {
		try {
			await this.#apply(todo, definitions, host)
		} finally {
			this.#early.clear()
		}
	}

	async #apply(todo: Plan, definitions: Definition[], host: Host): Promise<void> {
		const old = this.current
		const stopped: Instance[] = []
		let next: Generation
		try {
			const instances: Instance[] = []
			for (const definition of inOrder(todo, definitions)) {
				const { name, exclusive } = definition.plugin
				if (this.#lacksNeed(definition, instances)) continue
				const before = old?.instances.get(name)
				if (before && todo.keep.has(name)) {
					instances.push(before)
					continue
				}
				if (before && exclusive) {
					await before.stop()
					stopped.push(before)
				}
				const fresh = await this.#start(definition, host)
				if (fresh) this.failures.delete(name)
				const instance = fresh ?? (before && (await this.#again(before, stopped, host)))
				if (instance) instances.push(instance)
			}
			next = await this.#buildWhatFits(instances, stopped, host)
		} catch (error) {
			await this.#rollBack(stopped, host)
			throw error
		}
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

	status(): PluginStatus[] {
		const running = this.instances().map((instance): PluginStatus => {
			const uncaught = this.#uncaught.get(instance)
			const times = uncaught && uncaught.count > 1 ? ` (${uncaught.count} so far, this is the newest)` : ''
			return {
				name: instance.name,
				version: instance.definition.plugin.version ?? null,
				state: uncaught ? 'failing' : 'running',
				last_error: this.failures.get(instance.name) ?? (uncaught ? uncaught.message + times : instance.trouble),
				generation: this.#servingSince.get(instance) ?? null,
				source: instance.definition.source,
				since: instance.since,
			}
		})
		const failed = [...this.failures]
			.filter(([name]) => !this.current?.instances.has(name))
			.map(([name, error]): PluginStatus => ({
				name,
				version: null,
				state: 'failed',
				last_error: error,
				generation: null,
				source: null,
				since: null,
			}))
		return [...running, ...failed].toSorted((a, b) => (a.name < b.name ? -1 : 1))
	}

	/** Null for a third-party plugin that does not start. Throws for a built-in one. */
	async #start(definition: Definition, host: Host): Promise<Instance | null> {
		const { name } = definition.plugin
		try {
			return await Instance.start(definition, host, (one) => {
				this.#fresh.set(name, one)
				const early = this.#early.get(name)
				if (early && early.count > 0) this.#uncaught.set(one, early)
			})
		} catch (error) {
			this.#fresh.delete(name)
			if (definition.source === BUILT_IN) throw error
			this.fail(name, messageOf(error), error)
			return null
		}
	}

	/** The instance that ran until now, whose successor failed. Undefined if it had to stop and does not start again. */
	async #again(before: Instance, stopped: readonly Instance[], host: Host): Promise<Instance | undefined> {
		if (!stopped.includes(before)) return before
		const why = this.failures.get(before.name)
		const again = await this.#start(before.definition, host)
		// The operator can fix the successor, so its error is reported.
		if (why !== undefined) this.failures.set(before.name, why)
		return again ?? undefined
	}

	/** Whether it needs a plugin that is left out; then it is left out too, for that reason. */
	#lacksNeed({ plugin }: Definition, among: readonly Instance[]): boolean {
		const missing = plugin.needs?.find((need) => !among.some(({ name }) => name === need))
		if (missing === undefined) return false
		this.fail(plugin.name, needsFailed(plugin.name, missing))
		return true
	}

	#build(instances: Instance[]): Promise<Generation> {
		const { log, redactor, checkResponses } = this.#options
		return Generation.build({ number: this.number + 1, instances, log, redactor, checkResponses })
	}

	/**
	 * Leaves out third-party plugins whose routes or tools conflict, the new ones first: running plugins take precedence
	 * over those to be added. Throws if the built-in ones conflict with each other.
	 */
	async #buildWhatFits(instances: Instance[], stopped: readonly Instance[], host: Host): Promise<Generation> {
		try {
			return await this.#build(instances)
		} catch (error) {
			if (instances.every(isBuiltIn)) throw error
		}
		const runs = (one: Instance): boolean => this.current?.instances.get(one.name) === one
		const rank = (one: Instance): number => (isBuiltIn(one) ? 0 : runs(one) ? 1 : 2)
		const fitting: Instance[] = []
		const tryWith = async (instance: Instance): Promise<boolean> => {
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
		for (const instance of instances.toSorted((a, b) => rank(a) - rank(b))) {
			if (isBuiltIn(instance)) {
				fitting.push(instance)
				continue
			}
			if (await tryWith(instance)) continue
			if (runs(instance)) continue
			await this.#letGo(instance)
			const before = this.current?.instances.get(instance.name)
			const again = before && (await this.#again(before, stopped, host))
			if (again && !(await tryWith(again)) && again !== before) await this.#letGo(again)
		}
		const kept: Instance[] = []
		for (const { name } of instances) {
			const instance = fitting.find((one) => one.name === name)
			if (!instance) continue
			if (!this.#lacksNeed(instance.definition, kept)) kept.push(instance)
			else if (!runs(instance)) await this.#letGo(instance)
		}
		return this.#build(kept)
	}

	async #letGo(instance: Instance): Promise<void> {
		await instance.stop()
		this.#fresh.delete(instance.name)
	}

	#makeCurrent(next: Generation): void {
		this.current = next
		this.#fresh.clear()
		this.#options.becameCurrent(next)
		for (const instance of next.instances.values()) {
			if (!this.#servingSince.has(instance)) this.#servingSince.set(instance, next.number)
			instance.serve()
		}
	}

	/** Stops the instances that were just started. An exclusive instance that had to stop is started again, with a generation that has it. */
	async #rollBack(stopped: Instance[], host: Host): Promise<void> {
		for (const instance of [...this.#fresh.values()].toReversed()) await instance.stop()
		this.#fresh.clear()
		const old = this.current
		if (!old || stopped.length === 0) return
		const instances: Instance[] = []
		for (const instance of old.instances.values()) {
			const again = stopped.includes(instance)
				? await this.#start(instance.definition, host).catch(() => null)
				: instance
			if (again) instances.push(again)
			else
				this.#options.log.error(
					{ plugin: instance.name },
					'the plugin had to stop for a change that failed, and does not start again as it was',
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
			.catch((error: unknown) => this.#options.log.error({ err: error }, 'an old generation could not be stopped'))
			.finally(() => this.#retiring.delete(done))
		this.#retiring.add(done)
	}
}

function isBuiltIn(instance: Instance): boolean {
	return instance.definition.source === BUILT_IN
}

function inOrder(todo: Plan, definitions: Definition[]): Definition[] {
	const byName = new Map(definitions.map((definition) => [definition.plugin.name, definition]))
	return todo.order.flatMap((name) => byName.get(name) ?? [])
}
