import type { Step } from '../../core/protocol.ts'

/** One step of a run's journal: those that the agent loop reads, and those by which the gateway knows where to continue. */
export type JournalStep =
	| Step
	/** A call that must not be made twice has begun. */
	| Readonly<{ kind: 'begun'; call_id: string }>
	/** The run continued after the gateway or its thread had ended during the run. */
	| Readonly<{ kind: 'restart' }>
	/** A request was too long for a model (`provider/model`). Later requests to it have at most `tokens` tokens. */
	| Readonly<{ kind: 'shrunk'; model: string; tokens: number }>
	/** The context that the model gets with the run (time, place, cause); always the run's first step. */
	| Readonly<{ kind: 'about'; content: string }>
	/** A person approved the call with these arguments; `edited` if they changed those of the model. */
	| Readonly<{ kind: 'approved'; call_id: string; digest: string; arguments: string; edited?: true }>
	| WaitStep

/** The run is paused: the call waits for the answer to a question, or for the end of another run. */
export interface WaitStep {
	readonly kind: 'waits'
	readonly call_id: string
	readonly for: Readonly<{ question_id: string } | { run_id: string }>
}

/**
 * The versions of each kind that this version of the gateway can read. A step is written with the last of them, in its field
 * `v`; a step without the field has version 1. If the meaning of a step changes, add a version, and keep the older ones as long
 * as they can be read.
 */
const readable: Readonly<Record<JournalStep['kind'], readonly number[]>> = {
	model: [1],
	tool: [1],
	remark: [1],
	begun: [1],
	restart: [1],
	shrunk: [1],
	about: [1],
	approved: [1],
	waits: [1],
}

/**
 * Describes the first unreadable step; null if the run can continue. Such a step was written by another version of the gateway:
 * an older one before an upgrade, or a newer one on the same cluster.
 */
export function unreadableStep(steps: readonly unknown[]): string | null {
	for (const step of steps) {
		const { kind, v = 1 } = step as { kind: string; v?: number }
		const versions = Object.hasOwn(readable, kind) ? readable[kind as JournalStep['kind']] : []
		if (!versions.includes(v)) return `"${kind}", version ${v}`
	}
	return null
}
