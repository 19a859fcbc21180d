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
 * Words
 * - gateway     the process; owns the few long-lived things: store, event log, run pool, sockets
 * - plugin      a definition, this file's `Plugin`; every feature is one
 * - instance    a started plugin with its settings; a changed setting or file makes a new instance
 * - generation  the immutable set of instances that serves at a time, with their routes, tools and handlers
 * - scope       what one instance acquired; given back in reverse order when it stops
 * - service     what `start` answers: what other plugins reach by `ctx.use(name)`
 * - extension   what a plugin adds to another one's feature, such as a kind of channel
 * - tool        what an agent's model may call; a primitive is a tool of the gateway's own
 * - run         one prompt on its way to an answer
 * - event       something that happened, on the SSE stream and in the audit log
 *
 * The life of an instance
 * 1. its settings are checked against `config(joi)`; anything wrong refuses the whole reload
 * 2. `start(ctx)` acquires what it needs; what it acquires it registers in the same breath with `ctx.own` or `ctx.defer`
 * 3. `http(server, ctx)` adds its routes to the generation being built (again for every later generation)
 * 4. its generation becomes current; only now do its routes, tools and handlers act, so old and new may overlap
 * 5. `ctx.signal` aborts
 * 6. what it acquired is released, last first, each within a deadline; also when `start` threw half way
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Server } from '@hapi/hapi'
import type Joi from 'joi'
import type { EventBus } from './events.ts'
import type { Redactor } from './redactor.ts'
import type { GatewayStatus } from './status.ts'
import type { Logger } from './log.ts'
import type { NewEvent, ToolSpec } from './protocol.ts'
import type { RunPool } from './runs.ts'
import type { EventEnvelope, RunQueue, Snapshots, Store } from './store/ports.ts'
import type { Toolbox } from './toolbox.ts'

/**
 * What plugins offer each other, by plugin name. Each plugin's `contract.ts` adds itself:
 *
 *     declare module '../../core/plugin.ts' { interface Services { clock: Clock } }
 */
// oxlint-disable-next-line typescript/no-empty-interface -- grows by declaration merging
export interface Services {}

/**
 * What plugins add to the features of others, by extension point. The plugin that has the feature says in its `contract.ts`
 * what it takes:
 *
 *     declare module '../../core/plugin.ts' { interface Extensions { channel: ChannelAdapter } }
 */
// oxlint-disable-next-line typescript/no-empty-interface -- grows by declaration merging
export interface Extensions {}

export interface Plugin<Config = unknown> {
	/** The key under `plugins:` in gateway.yaml; letters, digits and `-`. */
	name: string
	/** Shown by GET /v1/plugins. */
	version?: string
	/** Plugins that must be switched on; they start before this one. */
	needs?: readonly string[]
	/** The old instance must have stopped before the new one starts: one bot token, one poller, one port. */
	exclusive?: boolean
	/** Checks the settings. joi is handed in, so that a plugin's file needs no package of its own. Absent: no settings are taken. */
	config?(joi: Joi.Root): Joi.ObjectSchema<Config>
	/** Acquires. What it answers is the service that `ctx.use(name)` gives to others. */
	start?(ctx: Context<Config>): unknown
	/** On every server of a generation that there is, before anybody's routes: what all of them must pass. */
	guard?(server: Server, ctx: Context<Config>): void
	/** An ordinary hapi plugin body in its own realm, run once for each generation: routes only, nothing acquired. */
	http?(server: Server, ctx: Context<Config>): void | Promise<void>
	/** The same on the legacy address, which listens only while some plugin has this. */
	legacy?(server: Server, ctx: Context<Config>): void | Promise<void>
}

/** What a plugin is given. All of it stays valid until the instance is released. */
export interface Context<Config = unknown> {
	readonly name: string
	/** Checked settings, with defaults filled in; frozen. */
	readonly config: Config
	readonly log: Logger
	/** The environment that the gateway was started with. */
	readonly env: Readonly<NodeJS.ProcessEnv>
	/**
	 * Takes secrets out of what is told, stored or logged. Events, records, jobs, answers and logs pass it by themselves; what
	 * leaves by another way, such as a channel's message or a file, is passed by it first.
	 */
	readonly redactor: Redactor
	/** Aborts when the instance is about to be released. */
	readonly signal: AbortSignal
	/** Settles once the instance's generation is current: work that needs the tools or routes of others waits for it. */
	readonly serving: Promise<void>
	/**
	 * Called each time that a generation with this instance becomes current, the first time included: what the others
	 * contribute may be other things by now. Must not take long; what it throws is logged.
	 */
	onGeneration(handle: () => unknown): void
	readonly store: Store
	readonly events: EventBus
	readonly queue: RunQueue
	/** Copies of the whole store, as files. They hold what every agent keeps. */
	readonly snapshots: Snapshots
	readonly pool: RunPool
	/** Tools and primitives of the current generation. */
	readonly toolbox: Toolbox
	/** What a plugin keeps in files lies under `data/`, `keys/` or `run/` of `gateway.home`, mode 0600. */
	readonly gateway: GatewayStatus
	/**
	 * Another plugin's service. Late bound: ask when you need it and do not keep it, since that plugin may be replaced.
	 * Throws `unavailable` where no such plugin runs.
	 */
	use<K extends keyof Services>(name: K): Services[K]
	/** The same, or undefined where no such plugin runs. */
	find<K extends keyof Services>(name: K): Services[K] | undefined
	/** Registers what must be undone when this instance stops. `label` names it where it hangs. */
	defer(release: () => unknown, label: string): void
	/** Registers a disposable thing and answers with it. */
	own<T extends AsyncDisposable | Disposable>(thing: T, label: string): T
	/** Records of this plugin's own, apart from everybody else's. */
	collection<T>(name: string): Collection<T>
	/** Adds a tool of the gateway's own. Its calls show as `primitive.called` and `primitive.result` or `primitive.failed`. */
	primitive(definition: ToolDefinition): void
	/** Adds tools that depend on the agent; asked at the start of each run. A provider that throws gives none. */
	tools(provide: (agent: AgentRef) => Promise<ToolDefinition[]> | ToolDefinition[]): void
	/** Adds to another plugin's feature, from the moment in which this instance's generation is current. */
	extend<K extends keyof Extensions>(point: K, extension: Extensions[K]): void
	/** What the plugins of the current generation add at an extension point. Late bound: ask again after `onGeneration`. */
	extensions<K extends keyof Extensions>(point: K): readonly Extension<K>[]
	/** Hears persisted events of a type, a family (`message.*`) or all (`*`), while its generation is current. What it throws is logged. */
	on(type: string, handle: (event: EventEnvelope) => unknown): void
	/** Hears WebSocket upgrades whose path starts with `prefix`, on the address it names. Must answer or destroy the socket. */
	upgrade(address: Address, prefix: string, handle: UpgradeHandler): void
	/** An event of the gateway itself, or of an agent outside a run. Settles once it is durable. */
	emit(event: NewEvent, agent?: string): Promise<void>
	/** Says what is wrong with this plugin while it runs, shown by GET /v1/plugins and /readyz?verbose; null: all is well again. */
	trouble(message: string | null): void
}

export interface Extension<K extends keyof Extensions> {
	/** Who adds it. */
	plugin: string
	value: Extensions[K]
}

export type Address = 'main' | 'legacy'
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** A small key-value table of one plugin. For records that must change together with others, use `ctx.store.commit`. */
export interface Collection<T> {
	get(id: string): Promise<T | undefined>
	put(id: string, value: T): Promise<void>
	/** Throws `conflict` where it exists. */
	create(id: string, value: T): Promise<void>
	/** Reads, changes and writes, again where somebody else was faster. `change` may answer undefined for: leave it. */
	update(id: string, change: (value: T | undefined) => T | undefined): Promise<T | undefined>
	delete(id: string): Promise<void>
	list(): AsyncIterable<[id: string, value: T]>
}

/** Which agent is meant. Records belong to the uid, so that an agent made anew under an old name finds nothing of the old one. */
export interface AgentRef {
	name: string
	uid: string
}

export interface ToolDefinition {
	/** 1-128 characters; a primitive's has dots (`memory.store`), an MCP tool's reads `mcp__server__tool`. */
	name: string
	/** For the model: what it does, and when to use it. */
	description: string
	/** A joi object (checked before `run`; unknown keys refused), or a JSON Schema that the tool itself checks. Absent: no arguments. */
	parameters?: Joi.ObjectSchema | Record<string, unknown>
	aliases?: ToolSpec['aliases']
	/**
	 * May a call that was in flight when the gateway died simply be made again? `run` then gets the same `call.key`.
	 * Where not, the model is told that the call was interrupted and its outcome is unknown. Default true for primitives
	 * (they must honour the key), false for tools of `ctx.tools`.
	 */
	repeatable?: boolean
	/** Event types for begin, end and failure of a call, and what to add to their payload. Default: the three of primitives. */
	events?: { called: string; result: string; failed: string; payload?: Record<string, unknown> }
	/** Answers with plain data, or with `call.pause(…)`. Throw a Fault to tell the model what to change. */
	run(args: Record<string, unknown>, call: ToolCall): unknown
}

export interface ToolCall {
	run_id: string
	agent: AgentRef
	conversation: string
	/** Unique for this call of this run, and the same again when the call is repeated: use it as the idempotency key. */
	key: string
	/** Aborts when the run is stopped. */
	signal: AbortSignal
	/** An event of this run, in order with the others. */
	emit(event: NewEvent): void
	/** Makes the run wait for somebody's answer, which becomes the result of this call. The run holds no thread meanwhile. */
	pause(question: QuestionText): Pause
	/**
	 * Asks in the middle of a call that cannot be left, such as one that an MCP server has under way: the run shows as
	 * paused and the answer comes back here. Throws `stopped` where the run ends first, `question_expired` after
	 * `runs.question_ttl_days`. A restart of the gateway takes the question back with the call. Questions of one call are
	 * asked one after another; 16 may wait (`queue_full`). At most 4,000 characters are shown, and 64 options taken.
	 */
	ask(question: QuestionText): Promise<string>
	/**
	 * Makes the run wait for the end of another run of the same agent, without a thread. How that run ended becomes the
	 * result of this call, exactly once, also after a restart: its answer, or its error.
	 */
	waitFor(run_id: string): Pause
	/**
	 * Lets the result show a secret that the redactor knows to the model, this once, such as one that the call has just made
	 * and gives out. Everything else that is told or kept of the call goes without it.
	 */
	reveal(secret_id: string): void
}

export interface QuestionText {
	question: string
	options?: string[]
}

/** What a paused run waits for: a person's answer, or the end of another run of the same agent. */
export type Wait = QuestionText | { run_id: string }

/** The mark of a call that waits; made by `call.pause` only. */
export class Pause {
	readonly wait: Wait
	constructor(wait: Wait) {
		this.wait = wait
	}
}

/** Types a definition; at run time it answers what it got. */
export function definePlugin<Config = unknown>(plugin: Plugin<Config>): Plugin<Config> {
	return plugin
}
