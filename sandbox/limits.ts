/** Decides when a run is warned, when it gets its last model call, and when it may make no further call. */
import { Fault } from '../core/errors.ts'
import { usageOf } from '../core/protocol.ts'
import type { EndReason, Remark, RunLimits, Step, Usage } from '../core/protocol.ts'

/** The share of a limit at which the model is warned. */
const WARN_AT = 0.8
/** The share of the wall time that is kept for the last call. */
const LAST_TIME = 0.1
/** After this many rounds of the same calls with the same results in a row, the model is warned. */
const REPEATED = 3
/** After this many, it gets its last call. */
const REPEATED_LIMIT = 6

export interface Spending {
	limits: RunLimits
	journal: readonly Step[]
	/** Tokens of other runs, such as sub-agents, that count toward its limit. */
	elsewhere: number
}

/**
 * The remark that the model must get before the next call: a warning about a limit, once for each, or that this is its last call.
 * `left_ms`: of the wall time. Throws the limit's Fault if not even that call may be made.
 */
export function remarkDue(spending: Spending, left_ms: number): Remark | undefined {
	const { limits, journal, elsewhere } = spending
	const steps = modelCallsIn(journal)
	const tokens = tokensOf(journal) + elsewhere
	const total_ms = limits.wall_time_s * 1000
	const isFirst = steps === 0
	if (steps >= limits.steps) throw exceeded('limit_steps', spending)
	if (isFirst && tokens >= limits.tokens) throw exceeded('limit_tokens', spending)
	if (isFirst || lastCallFor(journal)) return undefined

	const repeated = repetitions(journal)
	if (steps === limits.steps - 1) return last('limit_steps', `this run may make ${limits.steps} model calls`)
	if (tokens >= limits.tokens) return last('limit_tokens', `this run has used its ${limits.tokens} tokens`)
	if (left_ms <= total_ms * LAST_TIME) return last('limit_wall_time', `the time of this run is nearly over`)
	if (repeated >= REPEATED_LIMIT) return last('repeated_calls', `the same call was made ${repeated} times in a row`)

	const warned = new Set(journal.flatMap((step) => (step.kind === 'remark' ? [step.about] : [])))
	const warn = (about: EndReason, isNear: boolean, content: string): Remark | undefined =>
		isNear && !warned.has(about) ? { about, content: `${content} Finish, or sum up what you have.` } : undefined
	if (repeated === REPEATED) {
		const content = `The same call with the same result was made ${repeated} times in a row. Do something else, or answer with what you have; after ${REPEATED_LIMIT} times the run ends.`
		return { about: 'repeated_calls', content }
	}
	return (
		warn(
			'limit_steps',
			steps >= limits.steps * WARN_AT,
			`This run has made ${steps} of its ${limits.steps} model calls; the last one comes without tools.`,
		) ??
		warn(
			'limit_tokens',
			tokens >= limits.tokens * WARN_AT,
			`This run has used ${tokens} of its ${limits.tokens} tokens.`,
		) ??
		warn(
			'limit_wall_time',
			left_ms <= total_ms * (1 - WARN_AT),
			`${Math.round(left_ms / 1000)} s of this run's ${limits.wall_time_s} s are left.`,
		)
	)
}

/** The reason why the next model call is the last one, if a remark has told the model. */
export function lastCallFor(journal: readonly Step[]): EndReason | undefined {
	return journal.flatMap((step) => (step.kind === 'remark' && step.last ? [step.about] : [])).at(-1)
}

export function exceeded(reason: EndReason, { limits, journal, elsewhere }: Spending): Fault {
	const steps = modelCallsIn(journal)
	const who = elsewhere > 0 ? 'the run and its sub-agents' : 'the run'
	const made = Math.max(steps, limits.steps)
	const messages: Record<EndReason, string> = {
		limit_steps: `the run made ${made} model calls, its limit is ${limits.steps}; raise config.limits.steps of the agent`,
		limit_tokens: `${who} used ${tokensOf(journal) + elsewhere} tokens, its limit is ${limits.tokens}; raise config.limits.tokens of the agent`,
		limit_wall_time: `the run was active for longer than its limit of ${limits.wall_time_s} s; raise config.limits.wall_time_s of the agent`,
		repeated_calls: `the model made the same call with the same result ${repetitions(journal)} times in a row`,
	}
	return new Fault(reason, messages[reason])
}

/** Whether a run may spend more after `usage`, which is not in its journal yet. */
export function hasTokensLeft({ limits, journal, elsewhere }: Spending, usage: Usage): boolean {
	return tokensOf(journal) + elsewhere + usage.input_tokens + usage.output_tokens < limits.tokens
}

export function modelCallsIn(journal: readonly Step[]): number {
	return journal.filter((step) => step.kind === 'model').length
}

function tokensOf(journal: readonly Step[]): number {
	const { input_tokens, output_tokens } = usageOf(journal)
	return input_tokens + output_tokens
}

function last(about: EndReason, why: string): Remark {
	const content = `This is the last call: ${why}. No tools can be called any more. Answer with what you have, and say what is missing.`
	return { about, content, last: true }
}

/** How often the latest round of calls was made in a row with the same results: 1 for once, 0 for no calls. */
function repetitions(journal: readonly Step[]): number {
	let latest: string | undefined
	let count = 0
	/** Results of the current round, by call. */
	let results = new Map<string, string>()
	for (const step of journal.toReversed()) {
		if (step.kind === 'tool') results.set(step.call_id, JSON.stringify([step.ok, step.content]))
		if (step.kind !== 'model') continue
		const { tool_calls } = step.answer
		if (tool_calls.length === 0) return count
		const round = JSON.stringify(tool_calls.map(({ id, name, arguments: args }) => [name, args, results.get(id)]))
		if (latest !== undefined && round !== latest) return count
		latest = round
		count++
		results = new Map()
	}
	return count
}
