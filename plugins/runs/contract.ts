import type { AgentLimit } from '../shared/agent-limit.ts'
import type { Schema } from 'joi'
import type { WireError } from '../../core/errors.ts'
import type { AgentRef, QuestionText, ToolCall } from '../../core/plugin.ts'
import type { Actor } from '../../core/util/context.ts'
import type { Payer } from '../usage/contract.ts'
import type {
	Attachment,
	ChatMessage,
	EndReason,
	FinishReason,
	NewEvent,
	ToolCallRequest,
	ToolSpec,
	Usage,
} from '../../core/protocol.ts'
import type { AnswerForm, ContextSummary, ModelOrder, ModelParams } from '../../sandbox/order.ts'
import type { AgentLimits, AgentRecord } from '../agents/contract.ts'
import type { EventEnvelope, Op } from '../../core/store/ports.ts'
import type { FitItem } from '../../sandbox/context/fit.ts'

export type RunStatus = 'queued' | 'started' | 'paused' | 'completed' | 'failed' | 'stopped'

/** Why a completed run ended: the reason that its model gave, or the limit that ended it earlier. */
export type RunEnding = Exclude<FinishReason, 'other'> | EndReason

export interface RunRecord {
	run_id: string
	/** The agent's name. */
	agent: string
	agent_uid: string
	/** Runs of one conversation execute one after another. */
	conversation: string
	status: RunStatus
	/**
	 * What started it: `api`, `chat`, `openai`, `mcp`, `heartbeat`, `subagent`, `compaction`, `summary`, `sampling`; a channel's
	 * type, `webhook`.
	 */
	trigger: string
	/** The HTTP request that started it, if any. */
	request_id?: string
	/** Who started it; absent in records of version 0.1.0. */
	actor?: Actor
	/** The caller toward whose daily limits the run counts. The runs that it starts count too. */
	payer?: Payer
	/** Of a run that another run started: the caller, as `callerOf` returns it, of the first one. Absent in records of version 0.2.0. */
	caller?: string
	/** The caller's `traceparent`, as in W3C Trace Context. */
	traceparent?: string
	prompt: string
	/** Attachments of the prompt. Without text, the prompt is empty. */
	attachments?: Attachment[]
	/**
	 * The cause, such as a delivery: the first event of its log, with the run's id added to the payload. Written exactly once,
	 * however the run ends.
	 */
	origin?: NewEvent
	/**
	 * Not a run, but a message that was added to the conversation outside of its runs. It ended when it was written; `prompt`
	 * tells the model the reason.
	 */
	said?: true
	/** Where the conversation takes place and with whom, in a few words for the model. */
	place?: string
	/** Where its result goes, for a retry; absent if nowhere, and in records of version 0.2.0. */
	destination?: Destination
	/** Replaces the agent's persona. */
	persona?: string
	/** The run that started this one, and its depth below a run that a person started: 1 for a sub-agent. */
	parent?: { run_id: string; depth: number }
	/** Id of the top run of the family, whose token limit all of its runs share. Absent until a run has started another one. */
	family?: string
	/** Runs that this one started. They are stopped if it is stopped or fails. */
	children?: string[]
	/** Paused runs that wait for the end of this one. */
	waited_by?: string[]
	/** `none`: the model gets no tools. */
	tools?: 'none'
	/** Replace the agent's limits. */
	limits?: Partial<AgentLimits>
	/** The run has its own inputs; see `RunInputs`. */
	given?: true
	/** It has `RunInputs.since`: it usually continues an earlier run that ended with `tool_calls`. */
	goes_on?: true
	created_at: string
	started_at: string | null
	ended_at: string | null
	answer: string | null
	/** Files that its model sends with the answer; absent if none. They are not sent if the run does not complete. */
	files?: AnswerFile[]
	/** Set if a completed run ended with calls of tools from `RunInputs`: the caller that started it executes them. */
	tool_calls?: ToolCallRequest[]
	usage: Usage
	/** Why a completed run ended; absent in records of version 0.1.0. */
	finish_reason?: RunEnding
	error: WireError | null
	/** Open while the run is paused, unless it waits for another run. */
	question: AskedQuestion | null
	/** The run that it waits for while paused. */
	waits_for?: string
	/** All runs that it waits for, if there are several. */
	waits_for_all?: string[]
	/** Milliseconds that it was active before its latest pause. */
	active_ms: number
}

/** A file that is sent with an answer. */
export type AnswerFile = Attachment & { name: string }

/** The fields of a question that people see. */
export interface AskedQuestion extends QuestionText {
	question_id: string
	/** `login`: an operator must sign in. Absent: a question of the agent. */
	kind?: 'approval' | 'login'
	/** With `approval`: the tool by its shown name, and the arguments of the call. */
	tool?: string
	arguments?: Record<string, unknown>
	/** With `approval`: when it counts as refused (ISO 8601). */
	expires_at?: string
}

/** An answer to a question. The fields besides `answer` are for approvals. */
export interface Answer {
	/** Of an approval: one of its options, or a text that `readApproval` accepts. */
	answer: string
	/** With `edit`: in place of the arguments that the model wrote. */
	arguments?: Record<string, unknown>
	/** With `refuse`: for the model. */
	reason?: string
}

/** A call that was approved permanently, as the API shows it. */
export interface PermanentApproval {
	approval_id: string
	tool: string
	arguments: Record<string, unknown>
	approved_at: string
}

export interface Question extends AskedQuestion {
	run_id: string
	/** Of an approval: the tool's canonical name, and the result of `approvalDigest`. */
	call?: { name: string; digest: string }
	/** Of an answered approval. */
	given?: Pick<Answer, 'arguments' | 'reason'>
	/** The tool call that waits. */
	call_id: string
	asked_at: string
	answer: string | null
	answered_at: string | null
	/** Who answered. */
	actor?: Actor
	/** Asked during a call that remains in progress. */
	live?: true
	/** Why the question was closed without an answer. */
	closed?: 'expired' | 'withdrawn'
}

/** An open question, and the run that asks it. */
export interface OpenQuestion extends AskedQuestion {
	run_id: string
}

export interface Message {
	role: 'user' | 'assistant'
	content: string
	attachments?: Attachment[]
	timestamp: string
}

/**
 * Inputs of one run, besides those of its agent and its conversation. Kept until it ends; `since` for as long as the run, if
 * there is no `history`.
 */
export interface RunInputs {
	/** Earlier messages; they replace those of the conversation's earlier runs. */
	history?: ChatMessage[]
	/** The messages after the prompt: answers, and the results of all their calls. If the last one is an answer, the run continues it. */
	since?: ChatMessage[]
	/**
	 * Tools of the caller that starts the run. A call of one completes the run, which then has `tool_calls`. Names are
	 * 1-64 of `a-z A-Z 0-9 _ -` and must differ from those of the agent's other tools.
	 */
	tools?: ToolSpec[]
	/** At most one call of these tools in an answer. */
	one_call?: boolean
	/** The required form of the answer. The caller describes it to the model in `persona`. */
	form?: AnswerForm
	/** Parameters of all its model calls. The smaller `max_tokens` of these and the operator's applies. */
	model?: Pick<ModelParams, 'temperature' | 'max_tokens'> & Pick<ModelOrder, 'sampling'>
}

export interface StartRequest extends Pick<
	RunRecord,
	'prompt' | 'trigger' | 'persona' | 'tools' | 'limits' | 'origin'
> {
	/**
	 * Attachments of the prompt, as `Attachments.take` returns them; required if the prompt is empty. The run keeps their blobs, and
	 * those of the newest attachments of `given`: 32 in total. Throws `unavailable` if one of them was deleted meanwhile.
	 */
	attachments?: Attachment[]
	/** Default: the agent's current session. */
	conversation?: string
	/** Within 24 h the same key returns the same run; a different request throws `idempotency_mismatch`. */
	idempotency_key?: string
	/** As `RunRecord.place`. Put text by others, such as a name, in quotes. At most 500 characters are kept. */
	place?: string
	/**
	 * The run that starts this one. Throws `stopped` if it was stopped or has failed. A run with a parent is accepted regardless
	 * of how many runs wait in its conversation.
	 */
	parent?: { run_id: string; depth: number }
	given?: RunInputs
	/** Where its result goes, as `Runs.destination` returned it. Becomes durable together with the run. */
	destination?: Destination | undefined
	/**
	 * Writes that become durable together with the run, or not at all: at most 50, in the agent's scope. Called again after
	 * a conflict. An error that it throws refuses the run.
	 */
	also?(run_id: string): Promise<Op[]>
}

/**
 * Where the result of a run is delivered, in addition to its record. `origin`: the chat in which the delivery was set up.
 * Otherwise a chat that is bound to the agent.
 */
export type Deliver = 'origin' | 'none' | { channel: string; chat: string }

/** For requests and for answers that have `deliver`. */
export interface DeliverFields {
	/** Optional. */
	given: Schema<Deliver>
	shown: Schema<Deliver>
}

/** A destination of results, as stored with the object that starts the runs, such as a heartbeat. */
export interface Destination {
	deliver: Deliver
	/** The chat in which it was set up, as `Destinations.origin` returned it. */
	origin?: Record<string, unknown>
}

/** Delivers results to people; the extension point `destination`. */
export interface Destinations {
	/** The chat in which a run takes place, or a run above it; undefined if there is none. Plain data, at most 1 KiB. */
	origin(run: RunRecord): Promise<Record<string, unknown> | undefined>
	/** What to store, with the channel's id. Throws `invalid_request` if results of this agent must not go there. */
	check(agent: AgentRef, destination: Destination): Promise<Destination>
	/** Called when a run with such a destination starts; undefined if its result goes nowhere. */
	open(agent: AgentRef, destination: Destination, conversation: string): Promise<OpenDestination | undefined>
	/**
	 * The run, or the message, is durable with its `ops`. May be called again, and on a different instance than the one on which
	 * `open` was called.
	 */
	begun(run: RunRecord, channel_id: string): Promise<void>
}

export interface OpenDestination {
	/** Null if unknown; then `failed` is set. */
	channel_id: string | null
	chat_id: string | null
	/** For the model, as `RunRecord.place`. */
	place?: string
	/** Set if results cannot be delivered: the run still executes, and `message.undelivered` reports the reason. */
	failed?: { code: string; message: string }
	/** As `StartRequest.also`: at most 10 writes. */
	ops(run_id: string): Op[]
}

/** A message to add to a conversation outside of its runs. */
export interface SaidMessage {
	conversation: string
	/** At most 64 Ki characters. */
	content: string
	/** For the model: the reason for the message, as a sentence. */
	about: string
	/** Within 24 h the same key returns the same message; a different `body` throws `idempotency_mismatch`. */
	idempotency?: { key: string; body: string }
	/** As `StartRequest.also`. */
	also(message_id: string): Promise<Op[]>
}

/** A message to an agent: a prompt for a new run, or the answer to a question. */
export interface NewMessage extends Omit<StartRequest, 'idempotency_key' | 'also' | 'destination'> {
	/**
	 * Called if the active run of the conversation, `run`, waits for the answer to a question of its own or of a sub-agent. Returns
	 * the text that answers it, or null to start a run that is queued behind `run`. An error that it throws refuses the message.
	 * Default: null.
	 */
	answerTo?(run: RunRecord, asked: OpenQuestion): string | null | Promise<string | null>
	/**
	 * Writes that become durable together with the run, or with the answer to its question, or not at all: at most 50, in the
	 * agent's scope. Called again after a conflict. `isNew`: the message starts the run. Its errors refuse the message.
	 */
	also?(run_id: string, isNew: boolean): Promise<Op[]>
}

/** The callbacks of a caller that follows a run. They must not throw, but `ask` may reject. */
export interface RunListener {
	/** Aborts when the caller leaves: no callback is called after that, and the result rejects with the signal's reason. */
	signal?: AbortSignal
	/** Whether to stop the run when `signal` aborts. Default: it continues. */
	stopsRun?: boolean
	/** A piece of the answer's text while the model streams it, never empty. */
	text?(piece: string): void
	/** Each event of the run, before the piece of text that it contains. */
	event?(event: EventEnvelope): void
	/**
	 * Called when the run, or a sub-agent that it waits for (`isBelow`), asks a question. Resolves to the answer, and the
	 * run continues; null: the result is `asks`. `signal` aborts if the question is closed or the run is no longer
	 * followed; then the answer is ignored. Absent: each question is a result.
	 */
	ask?(asked: OpenQuestion, signal: AbortSignal, isBelow: boolean): Promise<string | null>
	/**
	 * Additional results. `broken`: pieces of text were sent that are not part of the answer, because a model call broke off
	 * and its retry returned other text. `blocked`: the run waits in its conversation queue, behind one that asks a question.
	 */
	until?: readonly ('broken' | 'blocked')[]
}

export interface RunResult {
	/** A stopped run counts as `failed`. */
	status: 'completed' | 'asks' | 'failed' | 'broken' | 'blocked'
	/** Text between tool calls and at the end, separated by blank lines; if the run asks, the question last. */
	text: string
	/** Whether the pieces that `text` of the listener received add up to the text. */
	isWhole: boolean
	/** The model that answered last; null before the first answer. */
	model: string | null
	/** Sum of the model calls that were followed. */
	usage: Usage
	/** Finish reason of the model's last answer, as the provider states it. */
	finish_reason: string
	/** With `asks`. */
	question?: OpenQuestion
	/** With `failed`; null otherwise. */
	error: WireError | null
}

/** A followed run. */
export interface Exchange {
	readonly run_id: string
	/** Rejects with the reason of the listener's `signal` if that aborts first, or with the reason with which `ask` rejected. */
	readonly result: Promise<RunResult>
}

/** The numbers of unfinished runs of all agents, by activity, and of open questions. */
export interface RunCensus {
	/** Active or about to be. */
	active: number
	/** Queued behind another run of their conversation. */
	waiting: number
	/** Paused until a question is answered or another run has ended. */
	paused: number
	questions: number
}

export interface Runs {
	/** Durable when it settles. Throws `queue_full` if too many runs of the conversation, the agent, the caller or all agents wait. */
	start(agent: AgentRef, request: StartRequest): Promise<RunRecord>
	/**
	 * Sends a message in a conversation, by default the agent's current session, and follows its run: an answer to the open
	 * question if `answerTo` returns one, a new run otherwise. Settles when the message is durable; callbacks may be called
	 * before. Throws `queue_full`, and the errors of the callbacks of `message`.
	 */
	converse(agent: AgentRef, message: NewMessage, listener?: RunListener): Promise<Exchange>
	/** Follows a run from its current state. The text contains only later output. Throws `not_found`. */
	follow(run_id: string, listener?: RunListener): Promise<Exchange>
	/** The result of a run or the question that it asks, from its record; undefined while it is active or queued. */
	result(run: RunRecord): Promise<RunResult | undefined>
	/** Schemas of `deliver`, for the routes and tools of other plugins. */
	readonly deliverFields: DeliverFields
	/**
	 * Validates a destination, and returns what to store. `run_id`: the run that sets it up, if any. Default: the chat of that run,
	 * or `none`. Throws `invalid_request`.
	 */
	destination(agent: AgentRef, wanted: Deliver | undefined, run_id?: string): Promise<Destination>
	/** Validates a changed destination: its origin remains the chat in which it was first set up. */
	changeDestination(agent: AgentRef, before: Destination, wanted: Deliver): Promise<Destination>
	/**
	 * Adds a message to a conversation, which its later runs see. Durable when it settles. `isNew` is false if an earlier call with
	 * the same key added it.
	 */
	say(agent: AgentRef, message: SaidMessage): Promise<{ message: RunRecord; isNew: boolean }>
	/** Removes a message that `say` added and that could not be delivered. Does nothing for the id of a run. */
	unsay(agent: AgentRef, message_id: string): Promise<void>
	/** Throws `not_found`. */
	get(run_id: string): Promise<RunRecord>
	/** Undefined for a run that does not exist. */
	find(run_id: string): Promise<RunRecord | undefined>
	/**
	 * The messages of an ended run after its prompt, its own `since` first, for a run that continues it. Empty if the run has not
	 * ended, its log was deleted, or they have more than 1 Mi characters. Throws `not_found`.
	 */
	progress(run_id: string): Promise<ChatMessage[]>
	/** Newest first, those after `before` if given. Fewer than `limit` if they are large: 8 Mi characters together. */
	list(agent: AgentRef, options: { limit: number; before?: string; status?: RunStatus }): Promise<RunRecord[]>
	/**
	 * Runs of all agents, newest first, from `cursor` on if it is given. `id`: only runs whose id begins or ends
	 * with it. One page reads a bounded number of runs, so it may hold fewer than `limit`, even none, and still have a
	 * `next_cursor`.
	 */
	listAll(options: {
		limit: number
		cursor?: string
		status?: RunStatus
		id?: string
		/** Only runs of the agents with these uids. */
		of_uids?: ReadonlySet<string>
	}): Promise<{ runs: RunRecord[]; next_cursor: string | null }>
	/** Only the runs of agents that a caller can see. */
	visibleTo(caller: AgentLimit): Runs
	/** Throws `conflict` if the run has already ended. When it settles, the run and all runs that it started have ended. */
	cancel(run_id: string): Promise<RunRecord>
	/**
	 * Starts a failed or stopped run again: a new run in its conversation with the same prompt, attachments and destination. Within
	 * 24 hours a run is started again once: later calls return the new run, or start it again if it has failed, too. Throws
	 * `conflict` for a run that has not failed, or that answers a message or request (only `api`, `webhook` and `heartbeat` can be
	 * started again), or after 20 failed retries, with the id of the last one, and what `start` throws.
	 */
	retry(run_id: string): Promise<RunRecord>
	/** As `cancel`; false if the run does not exist or has already ended. */
	stop(run_id: string): Promise<boolean>
	/** Cancels every unfinished run of the agent. */
	stopAgent(agent: AgentRef): Promise<void>
	/**
	 * Cancels the unfinished runs that runs of a conversation started, at any depth, even if the runs in between have ended.
	 * Returns their number.
	 */
	stopStarted(agent: AgentRef, conversation: string): Promise<number>
	/** The active or paused run of a conversation, for whose end the others wait. */
	active(agent: AgentRef, conversation: string): Promise<RunRecord | undefined>
	/**
	 * The open question that a run waits for: its own, or that of a sub-agent that it waits for, at any depth. Null if there is
	 * none.
	 */
	asked(run: RunRecord): Promise<OpenQuestion | null>
	/** All open questions, in all conversations. */
	questions(agent: AgentRef): Promise<Question[]>
	/**
	 * Answers a question. Throws `not_found`, `already_answered`, `conflict` if the question was closed without an answer, and
	 * `invalid_request` or `invalid_arguments` for an invalid answer to an approval, which then stays open. `also`: at most 90
	 * writes in the agent's scope that become durable together with the answer, or not at all.
	 */
	answer(agent: AgentRef, question_id: string, answer: string | Answer, also?: Op[]): Promise<void>
	/** Calls that were approved permanently, newest first. */
	approvals(agent: AgentRef): Promise<PermanentApproval[]>
	/** Revokes a permanent approval: later calls ask again. Throws `not_found`. */
	revokeApproval(agent: AgentRef, approval_id: string): Promise<void>
	/** Appends events to a run, in order with its own. False if it has ended: then nothing is written. */
	appendEvents(run: Pick<RunRecord, 'run_id' | 'agent_uid'>, events: NewEvent[]): Promise<boolean>
	/**
	 * Appends events about a run's answer, such as `channel.message_sent`, also after the end of the run. False if the run no longer
	 * exists.
	 */
	report(run: Pick<RunRecord, 'run_id' | 'agent_uid'>, events: NewEvent[]): Promise<boolean>
	/**
	 * Calls a primitive, by its canonical name, during the call of another tool, with its own events. `call` must be the object that
	 * the outer tool got. The arguments are validated as usual; the result is plain data. Throws errors of the primitive as Faults,
	 * `tool_unknown` if there is no such primitive, and `permission_denied` if it would wait: the outer call cannot be suspended.
	 */
	callPrimitive(call: ToolCall, name: string, args: unknown): Promise<unknown>
	/** False also for an unknown run. */
	isActive(run_id: string): Promise<boolean>
	/**
	 * Whether a run of the agent is active or queued. Paused runs, summaries, and runs queued behind a paused run do not count;
	 * queued runs of `conversation` always count.
	 */
	isBusy(agent: AgentRef, conversation?: string): Promise<boolean>
	/** Reads every conversation that has a run, so it is slow with many of them: do not call it for each request. */
	census(): Promise<RunCensus>
	/** Messages of a conversation, oldest first; by default of the current session. `turns`: maximum number of turns, the newest. */
	history(agent: AgentRef, conversation?: string, turns?: number): Promise<Message[]>
	/** The current session of the API's runs. */
	session(agent: AgentRef): Promise<string>
	/** Begins a new session with an empty short-term memory. Returns its id. */
	newSession(agent: AgentRef): Promise<string>
	/** As `newSession`, and deletes the short-term notes of all conversations of the agent. */
	reset(agent: AgentRef): Promise<string>
	/**
	 * Begins a new session, and deletes the old one: stops its unfinished runs, and deletes the runs with their
	 * messages, notes, questions and sub-agents. Events stay. Returns the new session's id.
	 */
	clear(agent: AgentRef): Promise<string>
	/** What the next request of a conversation would contain. A conversation that does not exist counts as empty. */
	context(agent: AgentRecord, conversation: string): Promise<ContextReport>
	/**
	 * Begins to summarize all turns of a conversation except the newest two. Returns the number of turns that this adds to the
	 * summary. Throws `conflict` if there is nothing to summarize, or a summary is in progress.
	 */
	compact(agent: AgentRecord, conversation: string): Promise<number>
	/**
	 * Deletes a conversation: stops its unfinished runs, and deletes the runs with their messages, notes, questions, summaries and
	 * sub-agents. Events stay. For the current session as `clear`. Throws `not_found`.
	 */
	forget(agent: AgentRef, conversation: string): Promise<void>
	/** Deletes the short-term notes of a conversation that has ended. */
	forgetNotes(agent: AgentRef, conversation: string): Promise<void>
}

/** The next request of a conversation, as it would be composed now. */
export interface ContextReport {
	conversation: string
	provider: string
	model: string
	/** Tokens that the request may take. */
	budget: number
	/** Tokens of all items, by the estimate. */
	tokens: number
	/** In the order of the request. */
	items: FitItem[]
	/** The newest summary of older turns. */
	summary: SummaryRecord | null
}

/** The stored summary of a conversation's older turns. */
export interface SummaryRecord extends ContextSummary {
	/** The oldest turn that it covers. */
	since: string
	/** How many turns it covers. */
	turns: number
	made_at: string
}

/** Stores facts of turns that requests omit; the extension point `facts`. */
export interface FactKeeper {
	/**
	 * `facts`: at most eight sentences that a model extracted from a conversation. They are data, never instructions. Returns the
	 * ids of the stored memories.
	 */
	keep(agent: AgentRef, facts: readonly string[]): Promise<string[]>
}

export interface RunSettings {
	limits: AgentLimits
	/** Limit of runs that wait behind the active one of a conversation. */
	max_waiting: number
	max_waiting_per_agent: number
	max_waiting_total: number
	question_ttl_days: number
	/** Seconds. */
	approval_ttl_s: number
	retention_days: number
	/** Days that requests to models are kept; 0: none is kept. */
	keep_requests: number
}

/**
 * Plain text of a plugin for the models of agents, added by `ctx.extend('prompt', …)`. Use the tool names of `ToolDefinition`;
 * they are replaced by the names that the model sees. A part that throws, or takes longer than 5 s, is omitted from that run.
 */
export interface PromptPart {
	/**
	 * At the beginning of each request, at most 16,384 characters. Return the same text for each run of the agent as long as
	 * possible: providers charge less for a cached beginning.
	 */
	stable?(agent: AgentRef): string | undefined | Promise<string | undefined>
	/** Called once when a run begins, and stored with it: lines such as `Place: the workshop`, at most 2,048 characters. */
	run?(run: PromptRun): string | ToldRun | undefined | Promise<string | ToldRun | undefined>
}

/** Describes the readiness of a plugin's `ctx.tools`; added by `ctx.extend('tools', …)`. */
export interface ToolSource {
	/**
	 * Settles once `ctx.tools` can return the agent's tools, or when waiting longer is useless. A run waits at most 12 s for it, so
	 * settle within 10 s. The signal aborts when the run is stopped.
	 */
	ready?(agent: AgentRef, signal: AbortSignal): Promise<void>
	/**
	 * Tells the model why the agent does not have a tool that it called, such as `the skill waits for approval`. Undefined if the
	 * name is not one of the plugin's. Must settle within 2 s.
	 */
	whyMissing?(agent: AgentRef, name: string): Promise<string | undefined>
}

/** The text of a `PromptPart` for a run, and an event about it. */
export interface ToldRun {
	text: string
	/** An event of the run, written with its beginning. Its type begins with the plugin's name and a dot; others are omitted. */
	event?: NewEvent
}

/** A run as `PromptPart` gets it. */
export interface PromptRun {
	run_id: string
	agent: AgentRef
	conversation: string
	/** What started it, such as `api`. */
	trigger: string
	prompt: string
}

declare module '../../core/plugin.ts' {
	interface Services {
		runs: Runs
	}
	interface Extensions {
		facts: FactKeeper
		prompt: PromptPart
		tools: ToolSource
		destination: Destinations
	}
}

declare module '../../config/types.ts' {
	interface Config {
		runs: RunSettings
	}
}
