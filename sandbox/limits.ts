import { Fault } from '../core/errors.ts'
import { usageOf } from '../core/protocol.ts'
import type { RunLimits, Step } from '../core/protocol.ts'

/**
 * Throws where the run may make no further call of that kind: `limit_tokens`, or `limit_steps` for a model call.
 * `elsewhere`: tokens of other runs that count with its own.
 */
export function checkLimits(
	limits: RunLimits,
	journal: readonly Step[],
	next: 'model' | 'tool',
	elsewhere: number = 0,
): void {
	const { input_tokens, output_tokens } = usageOf(journal)
	const used = input_tokens + output_tokens + elsewhere
	if (used >= limits.tokens) {
		const who = elsewhere > 0 ? 'the run and its sub-agents' : 'the run'
		throw new Fault(
			'limit_tokens',
			`${who} used ${used} tokens, its limit is ${limits.tokens}; raise config.limits.tokens of the agent`,
		)
	}
	const steps = journal.filter((step) => step.kind === 'model').length
	if (next === 'model' && steps >= limits.steps) {
		throw new Fault(
			'limit_steps',
			`the run made ${steps} model calls, its limit is ${limits.steps}; raise config.limits.steps of the agent`,
		)
	}
}

export function wallTimeExceeded(limits: RunLimits): Fault {
	return new Fault(
		'limit_wall_time',
		`the run was active for longer than its limit of ${limits.wall_time_s} s; raise config.limits.wall_time_s of the agent`,
	)
}
