/** The contract of tools, which an agent's model may call: a tool, a call of it, and a call that waits. */
import type Joi from 'joi'
import type { NewEvent, ToolSpec } from '../protocol.ts'

/** Identifies an agent. Records belong to the uid, so that a new agent with the name of a deleted one does not get its records. */
export interface AgentRef {
	name: string
	uid: string
}

/** The tools of the current generation. */
export interface Toolbox {
	/** All tools that this agent may use now, primitives first. */
	list(agent: AgentRef): Promise<ToolDefinition[]>
}

export interface ToolDefinition {
	/** 1-128 characters; a primitive's has dots (`memory.store`), an MCP tool's reads `mcp__server__tool`. */
	name: string
	/** If it differs from `name`: the name that people see, and that patterns of `config.tools` may match. */
	shown_as?: string
	/** For the model: what it does, and when to use it. */
	description: string
	/** A joi object (checked before `run`; unknown keys refused), or a JSON Schema that the tool itself checks. Absent: no arguments. */
	parameters?: Joi.ObjectSchema | Record<string, unknown>
	aliases?: ToolSpec['aliases']
	/**
	 * Whether a call that was in flight when the gateway died can be repeated. `run` then gets the same `call.key`. Otherwise the
	 * model is told that the call was interrupted and its outcome is unknown. Default: true for primitives (they must honour the
	 * key), false for tools of `ctx.tools`.
	 */
	repeatable?: boolean
	/**
	 * Whether calls may run at the same time as other calls of the same answer, because they depend on none of their effects.
	 * Default: true if `repeatable` is true.
	 */
	concurrent?: boolean
	/** It may destroy something: each call waits for approval, unless `config.tools` of the agent allows it. */
	destructive?: boolean
	/** Throws `invalid_arguments` for arguments that `run` would refuse. For arguments that a person edited, if `parameters` is a JSON Schema. */
	check?(args: Record<string, unknown>): void | Promise<void>
	/**
	 * Event types for the begin, the end and the failure of a call (as for `ctx.emit`), and additional fields of their payload.
	 * Default: the three types of primitives.
	 */
	events?: { called: string; result: string; failed: string; payload?: Record<string, unknown> }
	/** Returns plain data, `call.attach(…)` or `call.pause(…)`. Throw a Fault to tell the model what to change. */
	run(args: Record<string, unknown>, call: ToolCall): unknown
}

export interface ToolCall {
	run_id: string
	agent: AgentRef
	conversation: string
	/** Unique for this call of this run, and the same when the call is repeated: use it as the idempotency key. */
	key: string
	/** Aborts when the run is stopped or ends before the call has returned. */
	signal: AbortSignal
	/** An event of this run, in order with the others. Its type as for `ctx.emit`; throws `plugin_invalid` for a reserved one. */
	emit(event: NewEvent): void
	/** Makes the run wait for a person's answer, which becomes the result of this call. The run holds no thread meanwhile. */
	pause(question: PauseText): Pause
	/**
	 * Asks during a call that cannot be interrupted, such as one that an MCP server is processing: the run is shown as paused, and
	 * the answer is returned here. Throws `stopped` if the run ends first, `question_expired` after `runs.question_ttl_days`. A
	 * restart of the gateway withdraws the question with the call. A run asks its questions and approvals one after another, so a
	 * question waits while another is open; 16 may wait (`queue_full`). At most 4,000 characters and 64 options are used.
	 */
	ask(question: QuestionText): Promise<string>
	/**
	 * Makes the run wait for the end of another run of the same agent, without holding a thread. The answer or the error of that
	 * run becomes the result of this call, exactly once, even after a restart.
	 */
	waitFor(run_id: string): Pause
	/**
	 * Lets this one result show a secret to the model that is otherwise redacted, such as one that the call has just created
	 * and returns. It stays redacted in everything else that is reported or stored about the call.
	 */
	reveal(secret_id: string): void
	/**
	 * A result with attachments, such as an image: at most 16, and 20 MiB in all. They are stored with the result. A model that
	 * cannot read them gets a description instead. If one cannot be stored, the result states the reason.
	 */
	attach(value: unknown, files: readonly ToolFile[]): Attached
}

export interface ToolFile {
	bytes: Uint8Array
	name?: string
	/** A hint; the type is determined from the bytes. */
	media_type?: string
}

export interface QuestionText {
	question: string
	options?: string[]
}

export interface PauseText extends QuestionText {
	/** An operator must sign in somewhere, which answers the question. */
	kind?: 'login'
}

/** What a paused run waits for: a person's answer, or the end of another run of the same agent. */
export type Wait = PauseText | { run_id: string }

/** The mark of a result with attachments; made by `call.attach` only. */
export class Attached {
	readonly value: unknown
	readonly files: readonly ToolFile[]
	constructor(value: unknown, files: readonly ToolFile[]) {
		this.value = value
		this.files = files
	}
}

/** The mark of a call that waits; made by `call.pause` only. */
export class Pause {
	readonly wait: Wait
	constructor(wait: Wait) {
		this.wait = wait
	}
}
