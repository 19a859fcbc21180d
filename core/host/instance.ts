/** One started plugin: its settings, what it contributes and what it holds. */
import Joi from 'joi'
import { within } from '../util/deadline.ts'
import { Fault, isFault, isGeneralCode, messageOf } from '../errors.ts'
import type { FaultCode } from '../errors.ts'
import { checkEventType, guardedEmit, pluginEvent } from '../events/families.ts'
import type { EventBus } from '../events/event-bus.ts'
import { BUILT_IN } from './loader.ts'
import type { Logger } from '../log/log.ts'
import { onBehalfOf } from '../util/context.ts'
import type { Owner } from '../util/context.ts'
import type {
	AgentRef,
	Collection,
	Context,
	Extension,
	Extensions,
	Plugin,
	Services,
	ToolDefinition,
	UpgradeHandler,
	Address,
} from '../plugin.ts'
import { change } from '../store/change.ts'
import type { EventEnvelope, Store } from '../store/ports.ts'
import { lateService } from './late-service.ts'
import { Scope } from './scope.ts'
import { openTimers } from './timers.ts'
import { withEmit } from '../runs/toolbox.ts'

/** A plugin with checked settings, ready to be started. */
export interface Definition {
	plugin: Plugin
	config: unknown
	fingerprint: string
	/** Where its code came from, for people: `built in` or a folder. */
	source: string
}

export type InstanceState = 'starting' | 'running' | 'stopping' | 'stopped' | 'failed'

export interface Contributions {
	primitives: ToolDefinition[]
	providers: ((agent: AgentRef) => Promise<ToolDefinition[]> | ToolDefinition[])[]
	handlers: { type: string; handle: (event: EventEnvelope) => unknown }[]
	upgrades: { address: Address; prefix: string; handle: UpgradeHandler }[]
	extensions: { point: string; value: unknown }[]
}

/** What an instance adds to another plugin's feature, before its type is known. */
export interface AnyExtension {
	plugin: string
	value: unknown
	run<T>(work: () => T): T
}

/** What the gateway provides to every instance. */
export interface Host extends Pick<
	Context,
	'env' | 'redactor' | 'store' | 'events' | 'queue' | 'snapshots' | 'pool' | 'toolbox' | 'gateway'
> {
	log: Logger
	/** The instance that `asker` reaches by a plugin's name. */
	lookup(name: string, asker: Instance): { service: unknown } | undefined
	/** What the instances of the current generation add at an extension point. */
	extensions(point: string): AnyExtension[]
	/** Reports an error that a third-party plugin did not catch. */
	uncaught(error: unknown, plugin: string): void
}

/** How long `start` may take, and how long each thing may take to be given back. */
const START_DEADLINE_MS = 30_000
const RELEASE_DEADLINE_MS = 10_000

export class Instance {
	readonly definition: Definition
	readonly contributions: Contributions = { primitives: [], providers: [], handlers: [], upgrades: [], extensions: [] }
	readonly context: Context
	readonly since: string = new Date().toISOString()
	state: InstanceState = 'starting'
	/** The problem that it reports while it runs. */
	trouble: string | null = null
	/** What its `start` returned. */
	service: unknown
	/** The owner of its errors. */
	readonly owner: Owner
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
		this.owner = definition.source === BUILT_IN ? undefined : this.name
		this.#host = host
		this.#log = host.log.child({ plugin: this.name })
		this.context = this.#contextFrom(host)
	}

	get name(): string {
		return this.definition.plugin.name
	}

	/** Starts it. If that throws or takes too long, everything it had acquired is released before this throws. */
	static async start(definition: Definition, host: Host, registered?: (instance: Instance) => void): Promise<Instance> {
		const instance = new Instance(definition, host)
		registered?.(instance)
		try {
			instance.service = await within(
				START_DEADLINE_MS,
				'it',
				instance.run(() => definition.plugin.start?.(instance.context)),
			)
			instance.state = 'running'
			return instance
		} catch (error) {
			await instance.stop()
			instance.state = 'failed'
			throw new Fault('plugin_failed', `plugin "${instance.name}" failed to start: ${messageOf(error)}`, {
				cause: error,
			})
		}
	}

	/** Runs code of the plugin: every call into it that may leave a timer, promise or socket behind goes through this. */
	run<T>(work: () => T): T {
		return onBehalfOf(this.owner, work)
	}

	/** Calls one of its handlers and reports what it throws. `what`: the message of the log if it fails. Never rejects. */
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

	/** Its service for its own routes; see `Plugin.http`. */
	lateService(): unknown {
		return lateService(this.service, () => this.context.use(this.name as keyof Services))
	}

	/** Called when a generation that has it became current. */
	serve(): void {
		this.#serving.resolve()
		for (const handle of this.#onGeneration) void this.notify(handle, 'a plugin failed to follow a new generation')
	}

	/** A tool as the gateway may call it. Throws `plugin_invalid` if a third-party tool has events of the gateway's. */
	tool(definition: ToolDefinition): ToolDefinition {
		const { owner } = this
		if (owner === undefined) return definition
		const { called, result, failed } = definition.events ?? {}
		for (const type of [called, result, failed]) if (type !== undefined) checkEventType(type, owner)
		const run: ToolDefinition['run'] = (args, call) => {
			const guarded = withEmit(call, guardedEmit(call.emit, owner))
			return this.run(() => definition.run(args, guarded))
		}
		return Object.assign(Object.create(definition) as ToolDefinition, { run })
	}

	async stop(): Promise<void> {
		this.state = 'stopping'
		// Registered last, so that it comes before the release of anything that their work uses.
		if (!this.#scope.signal.aborted) this.#scope.defer(() => this.#timers.idle(), 'timers')
		const complaints = await this.run(() => this.#scope.release(RELEASE_DEADLINE_MS))
		for (const complaint of complaints) this.#log.error(complaint)
		this.state = 'stopped'
	}

	#contextFrom(host: Host): Context {
		const scope = this.#scope
		const { primitives, providers, handlers, upgrades, extensions } = this.contributions
		const events = this.owner === undefined ? host.events : eventsOf(host.events, this.owner)
		const timers = this.#timers
		const find = <K extends keyof Services>(name: K): Services[K] | undefined =>
			host.lookup(name, this)?.service as Services[K] | undefined
		return {
			name: this.name,
			config: this.definition.config,
			log: this.#log,
			joi: Joi,
			env: host.env,
			redactor: host.redactor,
			signal: scope.signal,
			serving: this.#serving.promise,
			onGeneration: (handle) => void this.#onGeneration.push(handle),
			store: host.store,
			events,
			queue: host.queue,
			snapshots: host.snapshots,
			pool: host.pool,
			toolbox: host.toolbox,
			gateway: host.gateway,
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
				throw new Fault(
					'plugin_invalid',
					`plugin "${this.name}": there is no error code "${code}"; add it to the plugin's errors, with its status`,
				)
			},
			isFault: (error, ...codes) => isFault(error, ...(codes as FaultCode[])),
			every: (ms, work) => timers.every(ms, work),
			after: (ms, work) => timers.after(ms, work),
			defer: (release, label) => scope.defer(release, label),
			own: (thing, label) => scope.own(thing, label),
			collection: <T>(name: string) => collectionOf<T>(host.store, this.name, name),
			primitive: (definition) => {
				checkPrimitive(definition)
				primitives.push(this.tool(definition))
			},
			tools: (provide) => void providers.push(provide),
			extend: (point, value) => void extensions.push({ point, value }),
			extensions: <K extends keyof Extensions>(point: K) => host.extensions(point) as unknown as Extension<K>[],
			on: (type, handle) => void handlers.push({ type, handle }),
			upgrade: (address, prefix, handle) => void upgrades.push({ address, prefix, handle }),
			emit: (event, agent) => events.emit(event, agent),
			trouble: (message) => void (this.trouble = message),
		}
	}
}

/** The event bus for a third-party plugin: it receives all events, and cannot emit the gateway's own types. */
function eventsOf(bus: EventBus, plugin: string): EventBus {
	return {
		...bus,
		async emit(event, agent) {
			await bus.emit(pluginEvent(event, plugin), agent)
		},
		async openRun() {
			throw new Fault(
				'plugin_invalid',
				`plugin "${plugin}": only the gateway writes the events of a run; use call.emit`,
			)
		},
		async journal() {
			throw new Fault('plugin_invalid', `plugin "${plugin}": only the gateway reads the journal of a run`)
		},
	}
}

/** A provider may return the same tools for each call of a run. */
const sound = new WeakSet<ToolDefinition>()

/** Throws `plugin_invalid`, saying what is missing: an incomplete tool cannot be described to a model. */
export function checkTool(tool: ToolDefinition): void {
	if (sound.has(tool)) return
	checkParts(tool)
	sound.add(tool)
}

function checkParts({ name, description, parameters, run }: ToolDefinition): void {
	if (typeof name !== 'string' || name === '' || name.length > 128)
		throw new Fault('plugin_invalid', 'a tool needs a name of 1 to 128 characters')
	if (typeof description !== 'string' || description === '') {
		throw new Fault('plugin_invalid', `the tool ${name} needs a description, from which a model learns when to use it`)
	}
	if (typeof run !== 'function') throw new Fault('plugin_invalid', `the tool ${name} needs a function run(args, call)`)
	if (parameters === undefined || Joi.isSchema(parameters)) return
	try {
		structuredClone(parameters)
	} catch (error) {
		throw new Fault('plugin_invalid', `the parameters of the tool ${name} are neither a joi schema nor a JSON Schema`, {
			cause: error,
		})
	}
}

function checkPrimitive(definition: ToolDefinition): void {
	checkTool(definition)
	if (/^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/.test(definition.name)) return
	throw new Fault(
		'plugin_invalid',
		`the primitive "${definition.name}" needs a name such as clock.now: lower-case words with dots between`,
	)
}

function collectionOf<T>(store: Store, plugin: string, name: string): Collection<T> {
	const keyOf = (id: string) => [`plugin:${plugin}`, name, id] as const
	return {
		get: async (id) => (await store.get<T>(keyOf(id)))?.value,
		put: async (id, value) => void (await store.put(keyOf(id), value)),
		create: async (id, value) => void (await store.create(keyOf(id), value)),
		update: (id, next) =>
			change<T | undefined>(store, `plugin:${plugin}`, async () => {
				const key = keyOf(id)
				const entry = await store.get<T>(key)
				const value = next(entry?.value)
				if (value === undefined) return { result: entry?.value }
				return { ops: [{ key, value, expect: entry?.rev ?? null }], result: value }
			}),
		delete: (id) => store.delete(keyOf(id)),
		async *list() {
			for await (const entry of store.list<T>([`plugin:${plugin}`, name])) yield [entry.key.at(-1) ?? '', entry.value]
		},
	}
}
