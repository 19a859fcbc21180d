/**
 * Checks what a thread says of its run, since another gateway's thread says it over the network, and it is stored and
 * shown as the run's own. A thread that says something else counts as lost: the run continues on another one.
 */
import type { WireError } from '../errors.ts'
import { WORKER_EVENTS } from '../protocol.ts'
import type {
	Calls,
	ModelAnswer,
	ModelUsage,
	Remark,
	RunOutcome,
	ToMain,
	ToolCallRequest,
	Usage,
	WorkerEvent,
} from '../protocol.ts'
import { threadLost } from './worker-threads.ts'

/** As it is said: anything at all. */
type Said<T> = { readonly [K in keyof T]?: unknown } | null | undefined

/** Throws `thread_lost`. */
export function checkEvent(event: WorkerEvent): void {
	const { event_type, payload }: NonNullable<Said<WorkerEvent>> = (event as Said<WorkerEvent>) ?? {}
	if (!types.has(event_type) || !isObject(payload)) throw wrong('an event that no thread emits')
	// It bounds what this model gets in every later run.
	if (event_type === 'context.shrunk' && !isAmount((payload as Record<string, unknown>).tokens))
		throw wrong('an event without its number')
}

/** Throws `thread_lost`. */
export function checkCall({ method, params }: Extract<ToMain, { kind: 'call' }>): void {
	if (isObject(params) && (checks[method] as ((said: unknown) => boolean) | undefined)?.(params) === true) return
	throw wrong('a call that cannot be read')
}

/** Throws `thread_lost`. */
export function checkOutcome(outcome: RunOutcome | null): RunOutcome {
	if (outcome === null) throw threadLost('the worker ended the run without an outcome')
	if (!isOutcome(outcome)) throw wrong('an outcome that the protocol does not have')
	return outcome
}

const types: ReadonlySet<unknown> = new Set(WORKER_EVENTS)

const checks = {
	reserve: ({ provider, model, tokens, cost }: NonNullable<Said<Calls['reserve']['params']>>) =>
		isText(provider) && isText(model) && isAmount(tokens) && isAmount(cost ?? 0),
	model: ({ answer, spent }: NonNullable<Said<Calls['model']['params']>>) => isAnswer(answer) && areSpent(spent),
	remark: ({ about, content }: NonNullable<Said<Remark>>) => isText(about) && isText(content),
	tool: ({ call }: NonNullable<Said<Calls['tool']['params']>>) => isToolCall(call),
	blob: ({ blob, media_type }: NonNullable<Said<Calls['blob']['params']>>) => isText(blob) && isText(media_type),
}

/** `stopped` is not among them: a run is stopped by this side, which then knows its outcome. */
function isOutcome(said: unknown): boolean {
	const { status, answer, usage, spent, ended_by, error, waits_for } = (said ?? {}) as Record<string, unknown>
	switch (status) {
		case 'completed':
			return isAnswer(answer) && isUsage(usage) && areSpent(spent) && isText(ended_by ?? '')
		case 'failed':
			return isError(error) && isUsage(usage) && areSpent(spent ?? [])
		case 'paused':
			return isText(waits_for)
		default:
			return false
	}
}

function isAnswer(said: unknown): boolean {
	const answer = (said ?? {}) as NonNullable<Said<ModelAnswer>>
	const { content, tool_calls, usage, provider, model, finish_reason, reasoning, estimate, provider_state } = answer
	return (
		isText(content) &&
		Array.isArray(tool_calls) &&
		tool_calls.every(isToolCall) &&
		isUsage(usage) &&
		isText(provider) &&
		isText(model) &&
		isText(finish_reason) &&
		isText(reasoning ?? '') &&
		isAmount(estimate ?? 0) &&
		(provider_state === undefined || isObject(provider_state))
	)
}

function isToolCall(said: unknown): boolean {
	const { id, name, arguments: args } = (said ?? {}) as NonNullable<Said<ToolCallRequest>>
	return isText(id) && isText(name) && isText(args)
}

function areSpent(said: unknown): boolean {
	return (
		Array.isArray(said) &&
		said.every((one: Said<ModelUsage>) => isText(one?.provider) && isText(one?.model) && isUsage(one?.usage))
	)
}

function isUsage(said: unknown): boolean {
	const { input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost } = (said ?? {}) as NonNullable<
		Said<Usage>
	>
	return (
		isAmount(input_tokens) &&
		isAmount(output_tokens) &&
		isAmount(cached_tokens ?? 0) &&
		isAmount(reasoning_tokens ?? 0) &&
		isAmount(cost ?? 0)
	)
}

function isError(said: unknown): boolean {
	const { code, message, provider_code } = (said ?? {}) as NonNullable<Said<WireError>>
	return isText(code) && isText(message) && isText(provider_code ?? '')
}

function isText(said: unknown): boolean {
	return typeof said === 'string'
}

/** Not `NaN` either. */
function isAmount(said: unknown): boolean {
	return typeof said === 'number' && said >= 0 && said < Infinity
}

function isObject(said: unknown): boolean {
	return typeof said === 'object' && said !== null
}

function wrong(what: string): Error {
	return threadLost(`the thread of the run said what no thread says: ${what}`)
}
