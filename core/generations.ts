/**
 * From one generation to the next. What is new starts beside what runs; one assignment makes the next generation
 * current; then the old one drains and what is no longer wanted is released. Whatever fails before that assignment
 * leaves the running world as it was.
 */
import { messageOf } from './errors.ts'
import { Generation } from './generation.ts'
import { Instance } from './instance.ts'
import type { Definition, Host } from './instance.ts'
import { BUILT_IN } from './loader.ts'
import type { Logger } from './log.ts'
import type { Plan } from './plan.ts'
import type { Redactor } from './redactor.ts'
import type { PluginStatus } from './status.ts'

export interface GenerationsOptions {
	log: Logger
	redactor: Redactor
	checkResponses: boolean
	/** Called in the same turn in which a generation becomes current. */
	becameCurrent: (generation: Generation) => void
	/** A plugin did not start. */
	failed: (plugin: string, message: string) => void
}

export class Generations {
	current: Generation | null = null
	/** Why a wanted plugin does not run, or does not run as its files now are. */
	readonly failures = new Map<string, string>()
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

	/** In dependency order. */
	instances(): Instance[] {
		return [...(this.current?.instances.values() ?? [])]
	}

	/** What `asker` reaches by a plugin's name: an instance that is about to serve sees those that will serve with it. */
	lookup(name: string, asker: Instance): Instance | undefined {
		const isFresh = this.#fresh.get(asker.name) === asker
		return (isFresh ? this.#fresh.get(name) : undefined) ?? this.current?.instances.get(name)
	}

	/** `booting`: a third party's plugin that does not start is left out instead of failing the whole. */
	async apply(todo: Plan, definitions: Definition[], host: Host, booting: boolean): Promise<void> {
		const old = this.current
		const stopped: Instance[] = []
		let next: Generation
		try {
			const instances: Instance[] = []
			for (const definition of inOrder(todo, definitions)) {
				const { name, exclusive } = definition.plugin
				const before = old?.instances.get(name)
				if (before && todo.keep.has(name)) {
					instances.push(before)
					continue
				}
				if (before && exclusive) {
					await before.stop()
					stopped.push(before)
				}
				const instance = await this.#start(definition, host, booting)
				if (instance) instances.push(instance)
			}
			next = await (booting ? this.#buildWhatFits(instances) : this.#build(instances))
		} catch (error) {
			await this.#rollBack(stopped, host)
			throw error
		}
		this.#makeCurrent(next)
		const gone = new Set([...todo.replace, ...todo.stop])
		const retired = [...(old?.instances.values() ?? [])].filter((one) => gone.has(one.name) && !stopped.includes(one))
		this.#retire(old, retired.toReversed())
	}

	/** Releases every instance, last first, and waits until the last request has ended. */
	async stop(): Promise<void> {
		for (const instance of this.instances().toReversed()) await instance.stop()
		await Promise.all(this.#retiring)
		await this.current?.drain()
	}

	status(): PluginStatus[] {
		const running = this.instances().map((instance): PluginStatus => ({
			name: instance.name,
			version: instance.definition.plugin.version ?? null,
			state: 'running',
			last_error: this.failures.get(instance.name) ?? instance.trouble,
			generation: this.#servingSince.get(instance) ?? null,
			source: instance.definition.source,
			since: instance.since,
		}))
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

	/** Null where it may fail alone, and did. */
	async #start(definition: Definition, host: Host, mayFail: boolean): Promise<Instance | null> {
		const { name } = definition.plugin
		try {
			const instance = await Instance.start(definition, host, (one) => this.#fresh.set(name, one))
			this.failures.delete(name)
			return instance
		} catch (error) {
			this.#fresh.delete(name)
			this.failures.set(name, messageOf(error))
			this.#options.failed(name, messageOf(error))
			if (mayFail && definition.source !== BUILT_IN) return null
			throw error
		}
	}

	#build(instances: Instance[]): Promise<Generation> {
		const { log, redactor, checkResponses } = this.#options
		return Generation.build({ number: this.number + 1, instances, log, redactor, checkResponses })
	}

	/** At the start a third party's plugin whose routes or tools do not fit is left out, and told of; built-in ones must fit. */
	async #buildWhatFits(instances: Instance[]): Promise<Generation> {
		try {
			return await this.#build(instances)
		} catch (error) {
			if (instances.every(isBuiltIn)) throw error
		}
		const fitting = instances.filter(isBuiltIn)
		for (const instance of instances) {
			if (isBuiltIn(instance)) continue
			try {
				const trial = await this.#build([...fitting, instance])
				await trial.drain()
				fitting.push(instance)
			} catch (error) {
				this.failures.set(instance.name, messageOf(error))
				this.#options.failed(instance.name, messageOf(error))
				await instance.stop()
			}
		}
		return this.#build(instances.filter((instance) => fitting.includes(instance)))
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

	/** What was freshly started goes. An exclusive instance that had to stop is started again, with a generation that has it. */
	async #rollBack(stopped: Instance[], host: Host): Promise<void> {
		for (const instance of [...this.#fresh.values()].toReversed()) await instance.stop()
		this.#fresh.clear()
		const old = this.current
		if (!old || stopped.length === 0) return
		const instances: Instance[] = []
		for (const instance of old.instances.values()) {
			const again = stopped.includes(instance)
				? await this.#start(instance.definition, host, true).catch(() => null)
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
			.catch((error: unknown) => this.#options.log.error({ err: error }, 'an old generation could not be put away'))
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
