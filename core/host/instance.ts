/** One started plugin: its settings, its contributions and its resources. */
import Joi from 'joi'
import { within } from '../util/deadline.ts'
import { Fault, isFault, isGeneralCode, messageOf, pluginInvalid } from '../errors.ts'
import type { FaultCode } from '../errors.ts'
import { continueChain, inChainOf } from '../events/chains.ts'
import { checkEventType, guardedEmit, pluginEvent } from '../events/families.ts'
import type { EventBus } from '../events/event-bus.ts'
import { checkDescribable, checkPrimitive } from './declared.ts'
import { BUILT_IN } from './loader.ts'
import type { Logger } from '../log/log.ts'
import { onBehalfOf } from '../util/context.ts'
import type { Owner } from '../util/context.ts'
import type { Collection, Context, Extension, Extensions, Services, ToolDefinition } from '../plugin.ts'
import type { Definition } from './plan.ts'
import type { PluginHoldings } from '../status.ts'
import { changeRecord } from '../store/change.ts'
import { mustBePlain } from '../store/plain-data.ts'
import type { Store } from '../store/ports.ts'
import { Scope } from './scope.ts'
import { openTimers } from './timers.ts'

/** What an instance adds to another plugin's feature, before its type is known. */
export type AnyExtension = Omit<Extension<never>, 'value'> & { point: string; value: unknown }

/** What the gateway provides to every instance. */
export interface Host {
	/** Parts of every context. */
	shared: Pick<
		Context,
		'env' | 'log' | 'redactor' | 'store' | 'events' | 'queue' | 'snapshots' | 'pool' | 'toolbox' | 'gateway'
	>
	/** The instance that `asker` gets for a plugin's name. */
	lookup(name: string, asker: Instance): Pick<Instance, 'service'> | undefined
	/** What the instances of the current generation add at an extension point. */
	extensions(point: string): readonly AnyExtension[]
	/** Reports an error that a third-party plugin did not catch. */
	uncaught(error: unknown, plugin: string): void
}

/** Deadlines of `start`, and of the release of each resource. */
const START_DEADLINE_MS = 30_000
const RELEASE_DEADLINE_MS = 10_000

/** The arguments with which the plugin calls these methods of its context. */
type Given<Method extends 'tools' | 'on' | 'upgrade'> = Parameters<Context[Method]>

export class Instance {
	readonly definition: Definition
	readonly context: Context
	readonly since: string = new Date().toISOString()
	readonly primitives: ToolDefinition[] = []
	readonly providers: Given<'tools'>[0][] = []
	readonly handlers: Given<'on'>[] = []
	readonly upgrades: Given<'upgrade'>[] = []
	readonly extensions: AnyExtension[] = []
	/** The owner of its errors; undefined for a built-in plugin. */
	readonly owner: Owner
	/** The number of its uncaught errors, and the message of the newest. */
	uncaught = { message: '', count: 0 }
	trouble: string | null
	/** The generation in which it began to serve. */
	servingSince: number | null = null
	isStarted = false
	service: unknown
	readonly #scope = new Scope()
	readonly #timers = openTimers({
		signal: this.#scope.signal,
		call: (work) => this.notify(work, 'the work of a timer failed'),
	})
	readonly #serving = Promise.withResolvers<void>()
	readonly #onGeneration: (() => unknown)[] = []
	readonly #log: Logger
	readonly #host: Host

	constructor(definition: Definition, host: Host) {
		this.definition = definition
		this.trouble = definition.trouble ?? null
		this.owner = definition.source === BUILT_IN ? undefined : this.name
		this.#host = host
		this.#log = host.shared.log.child({ plugin: this.name })
		this.context = this.#makeContext()
	}

	get name(): string {
		return this.definition.plugin.name
	}

	/** Throws `plugin_failed` if it fails or takes too long, after releasing everything that it acquired. */
	async start(): Promise<void> {
		try {
			const starting = this.run(() => this.definition.plugin.start?.(this.context))
			this.service = await within(START_DEADLINE_MS, 'it', starting)
			this.isStarted = true
		} catch (error) {
			await this.stop()
			throw new Fault('plugin_failed', `plugin "${this.name}" failed to start: ${messageOf(error)}`, { cause: error })
		}
	}

	/** Runs code of the plugin: every call into it that may leave a timer, promise or socket behind goes through this. */
	run<T>(work: () => T): T {
		return onBehalfOf(this.owner, work)
	}

	/** Calls one of its handlers and reports its error. `what`: the log message for that. Never rejects. */
	async notify(handle: () => unknown, what: string): Promise<void> {
		try {
			await this.run(handle)
		} catch (error) {
			this.failed(error, what)
		}
	}

	/** Reports an error of its code. `what`: the log message if the plugin is built in. */
	failed(error: unknown, what: string): void {
		if (this.owner === undefined) this.#log.error({ err: error }, what)
		else this.#host.uncaught(error, this.owner)
	}

	/**
	 * Its service for its own routes, as a proxy: each use reaches the service that is current at that time. A request may outlive
	 * the instance whose route it matched, and that instance's service is released.
	 */
	lateService(): unknown {
		if (typeof this.service !== 'object' || this.service === null) return this.service
		const current = (): object => this.context.use(this.name as keyof Services)
		let bound: { service: object; methods: WeakMap<WeakKey, unknown> } | undefined
		return new Proxy(Object.create(null) as object, {
			get(_, key) {
				const service = current()
				const value: unknown = Reflect.get(service, key, service)
				if (typeof value !== 'function') return value
				if (bound?.service !== service) bound = { service, methods: new WeakMap() }
				// A class method can access its private fields only on the real object.
				const method = bound.methods.get(value) ?? value.bind(service)
				bound.methods.set(value, method)
				return method
			},
			has: (_, key) => Reflect.has(current(), key),
		})
	}

	/** Called each time that a generation with this instance becomes current. */
	serve(generation: number): void {
		this.servingSince ??= generation
		this.#serving.resolve()
		for (const handle of this.#onGeneration) void this.notify(handle, 'a plugin failed to follow a new generation')
	}

	/**
	 * Wraps a third-party tool so that the gateway can call it. Throws `plugin_invalid` if the tool declares event types of the
	 * gateway, or a schema that cannot be described to models.
	 */
	tool(definition: ToolDefinition): ToolDefinition {
		const { owner } = this
		if (owner === undefined) return definition
		checkDescribable(definition)
		const { called, result, failed } = definition.events ?? {}
		for (const type of [called, result, failed]) if (type !== undefined) checkEventType(type, owner)
		const run: ToolDefinition['run'] = (args, call) => {
			const guarded = { ...call, emit: guardedEmit(call.emit, owner) }
			return this.run(() => definition.run(args, guarded))
		}
		return Object.assign(Object.create(definition) as ToolDefinition, { run })
	}

	/** What it has registered and acquired, except routes. */
	holdings(): Omit<PluginHoldings, 'routes'> {
		return {
			tools: this.primitives.map(({ name }) => name),
			events: [...new Set(this.handlers.map(([type]) => type))],
			extends: [...new Set(this.extensions.map(({ point }) => point))],
			timers: this.#timers.count(),
			resources: this.#scope.labels(),
		}
	}

	async stop(): Promise<void> {
		// Registered last, so that timers end before anything that their work uses is released.
		if (!this.#scope.signal.aborted) this.#scope.defer(() => this.#timers.idle(), 'timers')
		const failures = await this.run(() => this.#scope.release(RELEASE_DEADLINE_MS))
		for (const failure of failures) this.#log.error(failure)
	}

	#makeContext(): Context {
		const host = this.#host
		const { events, store } = host.shared
		const scope = this.#scope
		const timers = this.#timers
		const find = <K extends keyof Services>(name: K): Services[K] | undefined =>
			host.lookup(name, this)?.service as Services[K] | undefined
		return {
			...host.shared,
			name: this.name,
			config: this.definition.config,
			log: this.#log,
			joi: Joi,
			signal: scope.signal,
			serving: this.#serving.promise,
			events: this.owner === undefined ? events : eventsOf(events, this.owner),
			onGeneration: (handle) => void this.#onGeneration.push(handle),
			find,
			use: (name) => {
				const service = find(name)
				if (service === undefined)
					throw new Fault(
						'unavailable',
						`this needs plugin "${name}", which is not running; set plugins.${name} to true`,
					)
				return service
			},
			fault: (code, message, options) => {
				if (isGeneralCode(code) || Object.hasOwn(this.definition.plugin.errors ?? {}, code))
					return new Fault(code as FaultCode, message, options)
				throw pluginInvalid(
					`plugin "${this.name}": there is no error code "${code}"; add it to the plugin's errors, with its status`,
				)
			},
			isFault: (error, ...codes) => isFault(error, ...(codes as FaultCode[])),
			every: (ms, work) => timers.every(ms, work),
			after: (ms, work) => timers.after(ms, work),
			defer: (release, label) => scope.defer(release, label),
			own: (thing, label) => scope.own(thing, label),
			collection: <T>(name: string) => collectionOf<T>(store, this.name, name),
			primitive: (definition) => {
				checkPrimitive(definition)
				this.primitives.push(this.tool(definition))
			},
			tools: (provide) => void this.providers.push(provide),
			extend: (point, value) =>
				void this.extensions.push({ point, value, plugin: this.name, run: (work) => this.run(work) }),
			extensions: <K extends keyof Extensions>(point: K) => {
				const found = host.extensions(point) as unknown as readonly Extension<K>[]
				// The host's list is shared, and a third-party plugin may sort the list that it gets.
				return this.owner === undefined ? found : [...found]
			},
			on: (...handler) => void this.handlers.push(handler),
			upgrade: (...offer) => void this.upgrades.push(offer),
			emit: (event, agent) => this.context.events.emit(event, agent),
			trouble: (message) => void (this.trouble = message),
		}
	}
}

/** The most events of a third-party plugin that may wait to be stored; they are in memory. */
const MAX_PENDING_EVENTS = 10_000

/** The event bus for a third-party plugin: it receives all events, and cannot emit the gateway's own types. */
function eventsOf(bus: EventBus, plugin: string): EventBus {
	const refuse = async (): Promise<never> => {
		throw pluginInvalid(`plugin "${plugin}": the log of a run is for the gateway only; use call.emit`)
	}
	let pending = 0
	return {
		...bus,
		subscribe: (filter, receive) =>
			bus.subscribe(filter, (delivery) => inChainOf(delivery.event, () => receive(delivery))),
		async emit(event, agent) {
			const checked = pluginEvent(event, plugin)
			if (pending >= MAX_PENDING_EVENTS) {
				const why = `${MAX_PENDING_EVENTS} of its events are not stored yet, so this one is refused; await each ctx.emit`
				throw pluginInvalid(`plugin "${plugin}": ${why}`)
			}
			continueChain(checked.event_type, plugin)
			pending++
			try {
				await bus.emit(checked, agent)
			} finally {
				pending--
			}
		},
		openWriter: refuse,
		journal: refuse,
	}
}

function collectionOf<T>(store: Store, plugin: string, name: string): Collection<T> {
	const scope = `plugin:${plugin}`
	const keyOf = (id: string) => [scope, name, id] as const
	return {
		get: async (id) => (await store.get<T>(keyOf(id)))?.value,
		async put(id, value) {
			mustBePlain(value)
			await store.put(keyOf(id), value)
		},
		async create(id, value) {
			mustBePlain(value)
			await store.create(keyOf(id), value)
		},
		update: (id, next) =>
			changeRecord<T, T | undefined>(store, keyOf(id), (before) => {
				const value = next(before)
				if (value !== undefined) mustBePlain(value)
				return { next: value, result: value === undefined ? before : value }
			}),
		delete: (id) => store.delete(keyOf(id)),
		async *list() {
			for await (const entry of store.list<T>([scope, name])) yield [entry.key.at(-1) ?? '', entry.value]
		},
	}
}
