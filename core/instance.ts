/** One started plugin: its settings, what it contributes and what it holds. */
import Joi from 'joi'
import { within } from './deadline.ts'
import { Fault, messageOf } from './errors.ts'
import type { Logger } from './log.ts'
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
} from './plugin.ts'
import type { EventEnvelope, Store } from './store/ports.ts'
import { Scope } from './scope.ts'

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

/** What the gateway lends to every instance. */
export interface Host extends Pick<
	Context,
	'env' | 'redactor' | 'store' | 'events' | 'queue' | 'snapshots' | 'pool' | 'toolbox' | 'gateway'
> {
	log: Logger
	/** The instance that `asker` reaches by a plugin's name. */
	lookup(name: string, asker: Instance): { service: unknown } | undefined
	/** What the instances of the current generation add at an extension point. */
	extensions(point: string): { plugin: string; value: unknown }[]
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
	/** What it says is wrong with it while it runs. */
	trouble: string | null = null
	service: unknown
	readonly #scope = new Scope()
	readonly #serving = Promise.withResolvers<void>()
	readonly #onGeneration: (() => unknown)[] = []
	readonly #log: Logger

	constructor(definition: Definition, host: Host) {
		this.definition = definition
		this.#log = host.log.child({ plugin: this.name })
		this.context = this.#contextFrom(host)
	}

	get name(): string {
		return this.definition.plugin.name
	}

	/** Starts it; where that throws or takes too long, everything it had acquired is given back before this throws. */
	static async start(definition: Definition, host: Host, registered?: (instance: Instance) => void): Promise<Instance> {
		const instance = new Instance(definition, host)
		registered?.(instance)
		try {
			instance.service = await within(START_DEADLINE_MS, 'it', definition.plugin.start?.(instance.context))
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

	/** Called when a generation that has it became current. */
	serve(): void {
		this.#serving.resolve()
		for (const handle of this.#onGeneration) {
			const failed = (error: unknown): void =>
				this.#log.error({ err: error }, 'a plugin failed to follow a new generation')
			try {
				Promise.resolve(handle()).catch(failed)
			} catch (error) {
				failed(error)
			}
		}
	}

	async stop(): Promise<void> {
		this.state = 'stopping'
		for (const complaint of await this.#scope.release(RELEASE_DEADLINE_MS)) this.#log.error(complaint)
		this.state = 'stopped'
	}

	#contextFrom(host: Host): Context {
		const scope = this.#scope
		const { primitives, providers, handlers, upgrades, extensions } = this.contributions
		const find = <K extends keyof Services>(name: K): Services[K] | undefined =>
			host.lookup(name, this)?.service as Services[K] | undefined
		return {
			name: this.name,
			config: this.definition.config,
			log: this.#log,
			env: host.env,
			redactor: host.redactor,
			signal: scope.signal,
			serving: this.#serving.promise,
			onGeneration: (handle) => void this.#onGeneration.push(handle),
			store: host.store,
			events: host.events,
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
			defer: (release, label) => scope.defer(release, label),
			own: (thing, label) => scope.own(thing, label),
			collection: <T>(name: string) => collectionOf<T>(host.store, this.name, name),
			primitive: (definition) => {
				checkPrimitive(definition)
				primitives.push(definition)
			},
			tools: (provide) => void providers.push(provide),
			extend: (point, value) => void extensions.push({ point, value }),
			extensions: <K extends keyof Extensions>(point: K) => host.extensions(point) as unknown as Extension<K>[],
			on: (type, handle) => void handlers.push({ type, handle }),
			upgrade: (address, prefix, handle) => void upgrades.push({ address, prefix, handle }),
			emit: (event, agent) => host.events.emit(event, agent),
			trouble: (message) => void (this.trouble = message),
		}
	}
}

/** A provider may give the same tools for each call of a run. */
const sound = new WeakSet<ToolDefinition>()

/** Throws `plugin_invalid`, saying what is missing: a model cannot be told of half a tool. */
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
		async update(id, change) {
			for (;;) {
				const entry = await store.get<T>(keyOf(id))
				const value = change(entry?.value)
				if (value === undefined) return entry?.value
				try {
					await (entry ? store.update(keyOf(id), value, entry.rev) : store.create(keyOf(id), value))
					return value
				} catch (error) {
					if (!(error instanceof Fault && error.code === 'conflict')) throw error
				}
			}
		},
		delete: (id) => store.delete(keyOf(id)),
		async *list() {
			for await (const entry of store.list<T>([`plugin:${plugin}`, name])) yield [entry.key.at(-1) ?? '', entry.value]
		},
	}
}
