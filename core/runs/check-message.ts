/**
 * Checks the messages of a thread about its run: those of another gateway's thread come over the network, and what they
 * contain is stored and shown. A thread that sends an invalid one counts as lost: the run continues on another thread.
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

/** As it arrives: anything at all. */
type Unchecked<T> = { readonly [K in keyof T]?: unknown } | null | undefined

/** Throws `thread_lost`. */
export function checkEvent(event: WorkerEvent): void {
	const { event_type, payload }: NonNullable<Unchecked<WorkerEvent>> = (event as Unchecked<WorkerEvent>) ?? {}
	if (!types.has(event_type) || !isObject(payload)) throw wrong('an event that no thread emits')
	// It bounds what this model gets in every later run.
	if (event_type === 'context.shrunk' && !isAmount((payload as Record<string, unknown>).tokens))
		throw wrong('an event without its number')
}

/** Throws `thread_lost`. */
export function checkCall({ method, params }: Extract<ToMain, { kind: 'call' }>): void {
	if (isObject(params) && (checks[method] as ((value: unknown) => boolean) | undefined)?.(params) === true) return
	throw wrong('a call that cannot be read')
}

/** Throws `thread_lost`. */
export function checkOutcome(outcome: RunOutcome | null): RunOutcome {
	if (outcome === null) throw threadLost('the worker ended the run without an outcome')
	if (!isOutcome(outcome)) throw wrong('an outcome that the protocol does not define')
	return outcome
}

const types: ReadonlySet<unknown> = new Set(WORKER_EVENTS)

const checks = {
	reserve: ({ provider, model, tokens, cost }: NonNullable<Unchecked<Calls['reserve']['params']>>) =>
		isText(provider) && isText(model) && isAmount(tokens) && isAmount(cost ?? 0),
	model: ({ answer, spent }: NonNullable<Unchecked<Calls['model']['params']>>) => isAnswer(answer) && areSpent(spent),
	remark: ({ about, content }: NonNullable<Unchecked<Remark>>) => isText(about) && isText(content),
	tool: ({ call }: NonNullable<Unchecked<Calls['tool']['params']>>) => isToolCall(call),
	blob: ({ blob, media_type }: NonNullable<Unchecked<Calls['blob']['params']>>) => isText(blob) && isText(media_type),
}

/** `stopped` is not among them: a run is stopped by this side, which then knows its outcome. */
function isOutcome(value: unknown): boolean {
	const { status, answer, usage, spent, ended_by, error, waits_for } = (value ?? {}) as Record<string, unknown>
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

function isAnswer(value: unknown): boolean {
	const answer = (value ?? {}) as NonNullable<Unchecked<ModelAnswer>>
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

function isToolCall(value: unknown): boolean {
	const { id, name, arguments: args } = (value ?? {}) as NonNullable<Unchecked<ToolCallRequest>>
	return isText(id) && isText(name) && isText(args)
}

function areSpent(value: unknown): boolean {
	return (
		Array.isArray(value) &&
		value.every((one: Unchecked<ModelUsage>) => isText(one?.provider) && isText(one?.model) && isUsage(one?.usage))
	)
}

function isUsage(value: unknown): boolean {
	const { input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost } = (value ?? {}) as NonNullable<
		Unchecked<Usage>
	>
	return (
		isAmount(input_tokens) &&
		isAmount(output_tokens) &&
		isAmount(cached_tokens ?? 0) &&
		isAmount(reasoning_tokens ?? 0) &&
		isAmount(cost ?? 0)
	)
}

function isError(value: unknown): boolean {
	const { code, message, provider_code } = (value ?? {}) as NonNullable<Unchecked<WireError>>
	return isText(code) && isText(message) && isText(provider_code ?? '')
}

function isText(value: unknown): boolean {
	return typeof value === 'string'
}

/** Not `NaN` either. */
function isAmount(value: unknown): boolean {
	return typeof value === 'number' && value >= 0 && value < Infinity
}

function isObject(value: unknown): boolean {
	return typeof value === 'object' && value !== null
}

function wrong(what: string): Error {
	return threadLost(`the thread of the run sent an invalid message: ${what}`)
}
