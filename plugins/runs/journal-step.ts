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
