/**
 * THE contract for plugin authors. A plugin is a plain object, the default export of its `index.ts` or `index.js`:
 *
 *     import type { Plugin } from '…/core/plugin.ts'
 *     export default {
 *       name: 'clock',
 *       start(ctx) {
 *         ctx.primitive({ name: 'clock.now', description: 'The time.', run: () => new Date().toISOString() })
 *       },
 *     } satisfies Plugin
 *
 * docs/glossary.md defines the terms.
 *
 * The life of an instance
 * 1. its settings are checked against `config(joi)`; an error refuses the whole reload (`svc config validate` checks the same)
 * 2. `start(ctx)` acquires resources, and registers each in the same statement with `ctx.own` or `ctx.defer`
 * 3. `http(server, ctx, service)` adds its routes to the generation that is being built (again for every later generation)
 * 4. its generation becomes current; only now do its routes, tools and handlers take effect, so two instances may overlap
 * 5. `ctx.signal` aborts
 * 6. its resources are released in reverse order, each within a deadline; also if `start` threw halfway
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Server } from '@hapi/hapi'
import type Joi from 'joi'
import type { EventBus } from './events/event-bus.ts'
import type { Fault, FaultCode, FaultOptions } from './errors.ts'
import type { Redactor } from './redactor/redactor.ts'
import type { Logger } from './log/log.ts'
import type { Address } from './http/listening.ts'
import type { NewEvent } from './protocol.ts'
import type { RunPool } from './runs/run-pool.ts'
import type { AgentRef, Toolbox, ToolDefinition } from './runs/tool.ts'
import type { EventEnvelope, RunQueue, Snapshots, Store } from './store/ports.ts'
import type { GatewayStatus } from './status.ts'

export type { Address } from './http/listening.ts'
export type {
	AgentRef,
	Attached,
	PauseText,
	QuestionText,
	ToolCall,
	ToolDefinition,
	ToolFile,
	Wait,
} from './runs/tool.ts'

/**
 * The services that plugins offer each other, by plugin name. Each plugin's `contract.ts` adds itself:
 *
 *     declare module '../../core/plugin.ts' { interface Services { clock: Clock } }
 */
// oxlint-disable-next-line typescript/no-empty-interface -- grows by declaration merging
export interface Services {}

/**
 * What plugins add to the features of others, by extension point. The plugin with the feature declares in its `contract.ts` what
 * it accepts:
 *
 *     declare module '../../core/plugin.ts' { interface Extensions { channel: ChannelAdapter } }
 */
// oxlint-disable-next-line typescript/no-empty-interface -- grows by declaration merging
export interface Extensions {}

export interface Plugin<Config = unknown, Service = unknown> {
	/** The key under `plugins:` in gateway.yaml; letters, digits and `-`. */
	name: string
	/** Shown by GET /v1/plugins. */
	version?: string
	/**
	 * The version of this contract that it is written for: the `MAJOR.MINOR` of `svc-gateway` whose types it was checked with,
	 * such as '0.2'. A gateway whose contract is too old or too new leaves the plugin out and reports what to do. Absent: it
	 * runs in any version.
	 */
	contract?: string
	/** Plugins that must be switched on; they start before this one. */
	needs?: readonly string[]
	/** Whether the old instance must stop before the new one starts, such as for one bot token, one poller or one port. */
	exclusive?: boolean
	/**
	 * The scopes that it adds, each with a description of what it grants: `{ 'clock:write': 'Set clocks' }`. A token can be
	 * created with them while the plugin runs. Scopes of a third-party plugin begin with its name and a colon.
	 */
	scopes?: Readonly<Record<string, string>>
	/**
	 * The error codes that it adds: `{ clock_stopped: { status: 409, description: 'The clock was stopped.' } }`. In TypeScript,
	 * `interface ErrorCodes { clock_stopped: true }` in a `declare module '…/core/errors.ts'` makes them known to `Fault`. Codes of
	 * a third-party plugin begin with its name and an underscore (`-` in the name is written `_`).
	 */
	errors?: Readonly<Record<string, ErrorCode>>
	/**
	 * The event types that it emits, with descriptions for the API reference; usually the default export of its `events.ts`. For
	 * a third-party plugin's own types see `Context.emit`.
	 */
	events?: Readonly<Record<string, EventType>>
	/**
	 * Checks the settings. joi is an argument, so that the plugin needs no package of its own. Absent: the plugin has no
	 * settings.
	 */
	config?(joi: Joi.Root): Joi.ObjectSchema<Config>
	/**
	 * Acquires resources. Returns the service, which other plugins get by `ctx.use(name)`, and the next three functions as an
	 * argument.
	 */
	start?(ctx: Context<Config>): Service | Promise<Service>
	/** Called for each server of a generation, the main one first, before any routes: adds checks that all requests must pass. */
	guard?(server: Server, ctx: Context<Config>, service: Service, generation: GenerationView): void
	/**
	 * An ordinary hapi plugin body in its own realm, called once for each generation. It adds routes and must acquire nothing.
	 * `service` is late bound: a request that outlives its instance reaches the service of the instance that replaced it (and
	 * throws `unavailable` if the plugin was switched off). So call its methods within handlers, and do not destructure it
	 * outside.
	 */
	http?(server: Server, ctx: Context<Config>, service: Service, generation: GenerationView): void | Promise<void>
	/**
	 * The same at the legacy address, which listens only while a plugin has this function. The same rules for callers apply as
	 * at the main address. The plugins there determine the shape of errors in `onPreResponse`.
	 */
	legacy?(server: Server, ctx: Context<Config>, service: Service, generation: GenerationView): void | Promise<void>
}

/** What a code of a `Fault` means. */
export interface ErrorCode {
	/** Its HTTP status: 400 to 599. */
	status: number
	/** One sentence, for the reference of the API. */
	description: string
}

/** What an event of a type contains. */
export interface EventType {
	/** One sentence. */
	description: string
	/** Each field in one sentence, by its name; `name?` is a field that may be absent. */
	payload: Readonly<Record<string, string>>
}

/** The generation that is being built, for what depends on all its plugins. */
export interface GenerationView {
	/** `legacy` is null if no plugin uses that address. Routes are complete when hapi calls `onPreStart`. */
	readonly servers: Readonly<{ main: Server; legacy: Server | null }>
	/** Every scope that its plugins add, with what it grants. */
	readonly scopes: ReadonlyMap<string, string>
	/** Every error code that its plugins add; the general ones are in core/errors.ts. */
	readonly errors: ReadonlyMap<string, ErrorCode>
	/** Every event type that its plugins emit. */
	readonly events: ReadonlyMap<string, EventType>
	/** Whether this plugin came with the gateway. */
	isBuiltIn(plugin: string): boolean
}

/** What a plugin gets. All of it stays valid until the instance is released. */
export interface Context<Config = unknown> {
	readonly name: string
	/** Checked settings, with defaults filled in; frozen. */
	readonly config: Config
	/** For the schemas of routes and tools. */
	readonly joi: Joi.Root
	readonly log: Logger
	/** The environment that the gateway was started with. */
	readonly env: Readonly<NodeJS.ProcessEnv>
	/**
	 * Replaces secrets in what is sent, stored or logged. Events, records, jobs and logs are redacted automatically; other text
	 * that leaves the gateway, such as the error of a server in an answer, must be redacted first.
	 */
	readonly redactor: Redactor
	/** Aborts when the instance is about to be released. */
	readonly signal: AbortSignal
	/** Settles once the instance's generation is current: work that needs the tools or routes of others waits for it. */
	readonly serving: Promise<void>
	/**
	 * Called each time that a generation with this instance becomes current, the first time included: other plugins may contribute
	 * something else then. It must not take long; errors that it throws are logged.
	 */
	onGeneration(handle: () => unknown): void
	/** In the scope of an agent (`agent:<uid>`) new records throw `not_found` once the agent was deleted. */
	readonly store: Store
	/** All events, including live pieces. `emit` is as below; `openWriter` and `journal` are for built-in plugins only. */
	readonly events: EventBus
	readonly queue: RunQueue
	/** Copies of the whole store, as files. They contain the data of every agent. */
	readonly snapshots: Snapshots
	readonly pool: RunPool
	/** Tools and primitives of the current generation. */
	readonly toolbox: Toolbox
	/** A plugin stores its files under `data/`, `keys/` or `run/` of `gateway.home`, with mode 0600. */
	readonly gateway: GatewayStatus
	/**
	 * Another plugin's service. Late bound: ask when you need it and do not keep it, since that plugin may be replaced.
	 * Throws `unavailable` if no such plugin runs.
	 */
	use<K extends keyof Services>(name: K): Services[K]
	/** The same, or undefined if no such plugin runs. */
	find<K extends keyof Services>(name: K): Services[K] | undefined
	/**
	 * Makes an expected failure: `throw ctx.fault('not_found', 'there is no clock of this name')`. A route responds with the
	 * code's status, a tool passes the message to the model, so the message states what to change. The code is one of
	 * core/errors.ts or of the plugin's own `errors`.
	 */
	fault(code: FaultCode | (string & {}), message: string, options?: FaultOptions): Fault
	/** Whether this is an expected failure with one of the codes (with any code if none is given). */
	isFault(error: unknown, ...codes: (FaultCode | (string & {}))[]): error is Fault
	/**
	 * Calls `work` repeatedly, each time `ms` after the last call ended, until the instance stops. The instance's release waits for
	 * a running call to end. Errors are reported as this plugin's and do not prevent the next call. Returns a function that ends
	 * the timer early. `ms` is 1 to 2,147,483,647 (24 days), and one plugin has at most 1,000 timers: more throw
	 * `plugin_invalid`.
	 */
	every(ms: number, work: () => unknown): () => void
	/** Calls `work` once, `ms` from now, unless the instance stops before. Otherwise as `every`. */
	after(ms: number, work: () => unknown): () => void
	/** Registers a function that releases something when this instance stops. `label` names it in the log if the release hangs. */
	defer(release: () => unknown, label: string): void
	/** Registers a disposable object and returns it. */
	own<T extends AsyncDisposable | Disposable>(thing: T, label: string): T
	/** This plugin's own records, separate from those of others. */
	collection<T>(name: string): Collection<T>
	/** Adds a tool of the gateway's own. Its calls show as `primitive.called` and `primitive.result` or `primitive.failed`. */
	primitive(definition: ToolDefinition): void
	/** Adds tools that depend on the agent; called at the start of each run. If it throws, the run gets no tools from it. */
	tools(provide: (agent: AgentRef) => Promise<ToolDefinition[]> | ToolDefinition[]): void
	/** Adds to another plugin's feature, from the moment this instance's generation is current. */
	extend<K extends keyof Extensions>(point: K, extension: Extensions[K]): void
	/** What the plugins of the current generation add at an extension point. Late bound: ask again after `onGeneration`. */
	extensions<K extends keyof Extensions>(point: K): readonly Extension<K>[]
	/**
	 * Receives persisted events of a type, a family (`message.*`) or all (`*`), while its generation is current. Errors that it
	 * throws are logged.
	 */
	on(type: string, handle: (event: EventEnvelope) => unknown): void
	/** Receives WebSocket upgrades whose path starts with `prefix`, on the address it names. Must answer or destroy the socket. */
	upgrade(address: Address, prefix: string, handle: UpgradeHandler): void
	/**
	 * An event of this plugin, or of an agent outside a run. Begin its type with the plugin's name (`clock.ticked`): the first
	 * words of the gateway's own types (docs/events.md) and the names of built-in plugins are reserved, and throw
	 * `plugin_invalid` for a third-party plugin. Settles once it is durable. Await it: while 10,000 events of a third-party plugin
	 * are not durable, more throw `plugin_invalid`.
	 */
	emit(event: NewEvent, agent?: string): Promise<void>
	/**
	 * Reports a problem of this plugin while it runs, shown by GET /v1/plugins and /readyz?verbose; null: the problem is solved.
	 */
	trouble(message: string | null): void
}

export interface Extension<K extends keyof Extensions> {
	/** Who adds it. */
	plugin: string
	value: Extensions[K]
	/** Wrap calls of `value` in this, so that their uncaught errors are reported as that plugin's. */
	run<T>(work: () => T): T
}

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/**
 * A small key-value table of one plugin. Values are plain data: JSON and Uint8Array, at most 8 MiB each. Ids have at most
 * 900 bytes. For records that must change together with others, use `ctx.store.commit`.
 */
export interface Collection<T> {
	get(id: string): Promise<T | undefined>
	put(id: string, value: T): Promise<void>
	/** Throws `conflict` if it exists. */
	create(id: string, value: T): Promise<void>
	/**
	 * Reads, changes and writes, and retries after a conflict: `change` may be called several times. Undefined: nothing is
	 * written.
	 */
	update(id: string, change: (value: T | undefined) => T | undefined): Promise<T | undefined>
	delete(id: string): Promise<void>
	list(): AsyncIterable<[id: string, value: T]>
}

/** Gives a definition its type; at run time it returns its argument. */
export function definePlugin<Config = unknown, Service = unknown>(
	plugin: Plugin<Config, Service>,
): Plugin<Config, Service> {
	return plugin
}
