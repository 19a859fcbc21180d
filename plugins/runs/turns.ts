import { isFault } from '../../core/errors.ts'
import type { NewEvent } from '../../core/protocol.ts'
import type { RunLog } from '../../core/run-log.ts'

/**
 * One at a time for each run: whoever executes, stops or answers it. Kept apart from any instance of the plugin, since a
 * run that was begun by one instance may be stopped by the next.
 */
export interface Turn {
	/** Aborts when somebody wants the run stopped. */
	signal: AbortSignal
	/** Others may append to this log from now on; see `tell`. */
	writes(log: RunLog): void
	/** To be called before an event tells what the run's record says only a moment later: from now on readers wait for it. */
	settling(): void
}

interface Holder {
	controller: AbortController
	over: Promise<void>
	settling: boolean
	log?: RunLog
	/** Settles once there is a log. */
	writing: PromiseWithResolvers<void>
}

const holders = new Map<string, Holder>()

/** Waits for whoever has the run, and asks them to stop it where a `reason` for that is given; then does `work` with it. */
export async function withRun<T>(run_id: string, work: (turn: Turn) => Promise<T>, reason?: string): Promise<T> {
	// Several may wait, and the next of them may be the one that executes the run: each is told.
	for (let holder = holders.get(run_id); holder; holder = holders.get(run_id)) {
		if (reason !== undefined) holder.controller.abort(reason)
		await holder.over
	}
	const controller = new AbortController()
	const over = Promise.withResolvers<void>()
	const own: Holder = { controller, over: over.promise, settling: false, writing: Promise.withResolvers() }
	holders.set(run_id, own)
	try {
		return await work({
			signal: controller.signal,
			writes(log) {
				own.log = log
				own.writing.resolve()
			},
			settling: () => void (own.settling = true),
		})
	} finally {
		holders.delete(run_id)
		over.resolve()
	}
}

/** Does `work` where nobody has the run; otherwise it is left undone. */
export async function withFreeRun(run_id: string, work: () => Promise<void>): Promise<void> {
	if (!holders.has(run_id)) await withRun(run_id, work)
}

/**
 * For readers of a run's record: waits while the record is about to say what an event has told already, so that who
 * heard `run.completed` reads `completed`. True where it had to wait.
 */
export async function settled(run_id: string): Promise<boolean> {
	const holder = holders.get(run_id)
	if (!holder?.settling) return false
	await holder.over
	return true
}

/** Appends events by whoever has the run. False where nobody has it any more, and nothing was written. */
export async function tellHolder(run_id: string, events: NewEvent[]): Promise<boolean> {
	for (let holder = holders.get(run_id); holder; holder = holders.get(run_id)) {
		await Promise.race([holder.writing.promise, holder.over])
		try {
			if (!holder.log) continue
			await holder.log.append(events)
			return true
		} catch (error) {
			if (!isFault(error, 'stopped')) throw error
			await holder.over // its log was closed before: the run has just ended, paused, or lost its thread
		}
	}
	return false
}
