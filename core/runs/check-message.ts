/**
 * Checks the messages of a thread about its run: those of another gateway's thread arrive over the network, and their contents
 * are stored and shown. A thread that sends an invalid one counts as lost: the run continues on another thread.
 */
import type { WireError } from '../errors.ts'
import { WORKER_EVENTS } from '../protocol.ts'
import type {
	Calls,
	Method,
	ModelAnswer,
	ModelUsage,
	RunOutcome,
	ToMain,
	ToolCallRequest,
	Usage,
	WorkerEvent,
} from '../protocol.ts'
import { threadLost } from './worker-threads.ts'

/** Throws `thread_lost`. */
export function checkEvent(event: WorkerEvent): void {
	if (!isEvent(event)) throw invalid('an event that no thread emits')
	// The number bounds the model's requests for the rest of the run.
	if (event.event_type === 'context.shrunk' && !isAmount(event.payload.tokens))
		throw invalid('an event without its number')
}

/** Throws `thread_lost`. */
export function checkCall({ method, params }: Extract<ToMain, { kind: 'call' }>): void {
	if (!Object.hasOwn(calls, method) || !calls[method](params)) throw invalid('a call that cannot be read')
}

/** Throws `thread_lost`. */
export function checkOutcome(outcome: RunOutcome | null): RunOutcome {
	if (outcome === null) throw threadLost('the worker ended the run without an outcome')
	if (!outcomes.some((is) => is(outcome))) throw invalid('an outcome that the protocol does not define')
	return outcome
}

/** Received values may have any type. */
type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
/** Not `NaN` either. */
const isAmount: Check = (value) => typeof value === 'number' && value >= 0 && value < Infinity
const isObject: Check = (value) => typeof value === 'object' && value !== null
const is = (...values: readonly unknown[]): Check => {
	const known = new Set(values)
	return (value) => known.has(value)
}
const optional =
	(check: Check): Check =>
	(value) =>
		value === undefined || check(value)
const listOf =
	(check: Check): Check =>
	(value) =>
		Array.isArray(value) && value.every(check)

/** An object with these fields; further fields are not checked. */
function shape<T>(fields: { [K in keyof T]-?: Check }): Check {
	const checks = Object.entries<Check>(fields)
	return (value) => isObject(value) && checks.every(([name, check]) => check((value as Record<string, unknown>)[name]))
}

const isEvent = shape<WorkerEvent>({ event_type: is(...WORKER_EVENTS), payload: isObject })
const isError = shape<WireError>({
	code: isText,
	message: isText,
	provider_code: optional(isText),
	provider_status: optional(isAmount),
})
const isUsage = shape<Usage>({
	input_tokens: isAmount,
	output_tokens: isAmount,
	cached_tokens: optional(isAmount),
	reasoning_tokens: optional(isAmount),
	cost: optional(isAmount),
})
const areSpent = listOf(shape<ModelUsage>({ provider: isText, model: isText, usage: isUsage }))
const isToolCall = shape<ToolCallRequest>({ id: isText, name: isText, arguments: isText })
const isAnswer = shape<ModelAnswer>({
	content: isText,
	tool_calls: listOf(isToolCall),
	usage: isUsage,
	provider: isText,
	model: isText,
	finish_reason: isText,
	reasoning: optional(isText),
	estimate: optional(isAmount),
	request_tokens: optional(isAmount),
	limit: optional(isAmount),
	window: optional(isAmount),
	provider_state: optional(isObject),
})

const calls: { [M in Method]: Check } = {
	reserve: shape<Calls['reserve']['params']>({
		provider: isText,
		model: isText,
		tokens: isAmount,
		cost: optional(isAmount),
	}),
	slot: shape<Calls['slot']['params']>({ provider: isText, model: isText }),
	leave_slot: is(null),
	model: shape<Calls['model']['params']>({ answer: isAnswer, spent: areSpent }),
	remark: shape<Calls['remark']['params']>({ about: isText, content: isText, last: optional(is(true)) }),
	tool: shape<Calls['tool']['params']>({ call: isToolCall }),
	blob: shape<Calls['blob']['params']>({ blob: isText, media_type: isText }),
}

/** Without `stopped`: the main thread stops a run, and needs only its usage from the thread. */
const outcomes = [
	shape({ status: is('completed'), answer: isAnswer, usage: isUsage, spent: areSpent, ended_by: optional(isText) }),
	shape({ status: is('failed'), error: isError, usage: isUsage, spent: optional(areSpent) }),
	shape({ status: is('paused'), waits_for: isText }),
]

/** The usage that a message of a stopped run reports; empty if it cannot be read. */
export function spentIn(message: ToMain): ModelUsage[] {
	const reported: unknown =
		message.kind === 'call' ? message.params : message.kind === 'outcome' ? message.outcome : undefined
	const { spent } = Object(reported) as { spent?: ModelUsage[] }
	return spent && areSpent(spent) ? spent : []
}

function invalid(what: string): Error {
	return threadLost(`the thread of the run sent an invalid message: ${what}`)
}
