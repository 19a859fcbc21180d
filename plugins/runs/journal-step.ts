import type { Step } from '../../core/protocol.ts'

/** One step of a run's journal, which the gateway keeps: what the loop reads, and where the run stands. */
export type JournalStep =
	| Step
	/** A call that must not be made twice has begun. */
	| Readonly<{ kind: 'begun'; call_id: string }>
	/** The run continued after the gateway, or its thread, had ended in the middle of it. */
	| Readonly<{ kind: 'restart' }>
	/** A request turned out to be too long for a model (`provider/model`), which gets at most so many tokens from now on. */
	| Readonly<{ kind: 'shrunk'; model: string; tokens: number }>
	/** The context that the model gets with the run (time, place, cause); always the run's first step. */
	| Readonly<{ kind: 'about'; content: string }>
	/** A person approved the call with these arguments, in which they may have changed the model's. */
	| Readonly<{ kind: 'approved'; call_id: string; digest: string; arguments: string; edited?: true }>
	| WaitStep

/** The run is paused: the call waits for the answer to a question, or for the end of another run. */
export interface WaitStep {
	readonly kind: 'waits'
	readonly call_id: string
	readonly for: Readonly<{ question_id: string } | { run_id: string }>
}

/**
 * By kind, the versions that this program reads. A step is written with the last of them, as its field `v`; without the field it is
 * version 1. A step whose meaning changes gets the next version, and keeps the older one as long as it can be read.
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
 * The first step that cannot be read, for people; null if the run can continue. Another version of the gateway may have written it:
 * an older one before an upgrade, or a newer one that worked on the same cluster.
 */
export function unreadableStep(steps: readonly unknown[]): string | null {
	for (const step of steps) {
		const { kind, v = 1 } = step as { kind: string; v?: number }
		const versions = Object.hasOwn(readable, kind) ? readable[kind as JournalStep['kind']] : []
		if (!versions.includes(v)) return `"${kind}", version ${v}`
	}
	return null
}
