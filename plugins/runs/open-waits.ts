/** What a paused run waits for, by its journal. */
import type { Store } from '../../core/store/ports.ts'
import { onAbort } from '../../core/util/on-abort.ts'
import type { Question } from './contract.ts'
import type { WaitStep } from './journal-step.ts'
import { keys } from './keys.ts'
import type { Journal } from './run-log.ts'
import { isUnanswered } from './run-state.ts'
import type { LoggedRun } from './work.ts'

/** The waits in a journal: one for each call that waits and has no result yet. */
export function waitsIn({ steps }: Journal): WaitStep[] {
	const waits = new Map<string, WaitStep>()
	for (const step of steps) {
		if (step.kind === 'waits') waits.set(step.call_id, step)
		if (step.kind === 'tool' || step.kind === 'approved') waits.delete(step.call_id)
	}
	return [...waits.values()]
}

/** The ids of the questions among the waits. */
export function questionsIn(waits: readonly WaitStep[]): string[] {
	return waits.flatMap((wait) => ('question_id' in wait.for ? [wait.for.question_id] : []))
}

/** Settles once no question in the journal of the run is open, or `over` has aborted. */
export async function untilAnswered({ ctx: { store }, run, log }: LoggedRun, over: AbortSignal): Promise<void> {
	for (const question_id of questionsIn(waitsIn(log.journal)))
		if (!over.aborted) await untilClosed(store, run.agent_uid, question_id, over)
}

async function untilClosed(store: Store, uid: string, question_id: string, over: AbortSignal): Promise<void> {
	const key = keys.question(uid, question_id)
	const closed = Promise.withResolvers<void>()
	const check = (question: Question | undefined): void => {
		if (!question || !isUnanswered(question)) closed.resolve()
	}
	const stopWatching = store.watch<Question>(key, ({ value }) => check(value))
	const stay = onAbort(over, closed.resolve)
	try {
		check((await store.get<Question>(key))?.value)
		if (over.aborted) return
		await closed.promise
	} finally {
		stay()
		stopWatching()
	}
}
