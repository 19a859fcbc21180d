/**
 * A lock for each run: only one executes, stops or answers it at a time. Not part of a plugin instance, since a
 * run that one instance began may be stopped by the next.
 */
import { isFault } from '../../core/errors.ts'
import { causeNow } from '../../core/util/context.ts'
import type { Actor } from '../../core/util/context.ts'
import { onAbort } from '../../core/util/on-abort.ts'
import type { NewEvent } from '../../core/protocol.ts'
import type { RunLog } from './run-log.ts'

/** What the holder of a run's lock has of it. */
export interface RunLock {
	/** Aborts when the run is to be stopped. */
	signal: AbortSignal
	/** Who requested the stop, if that is known. */
	readonly stoppedBy: Actor | undefined
	/** The gateway that lent the run its thread has left: the run continues, and nothing was wrong with it. */
	departed?: boolean
	/** From now on others may append to this log; see `appendByHolder`. */
	writes(log: RunLog): void
}

interface Holder {
	controller: AbortController
	stoppedBy?: Actor | undefined
	over: Promise<void>
	log?: RunLog
	/** Settles when a log exists. */
	writing: PromiseWithResolvers<void>
}

const holders = new Map<string, Holder>()
/** Runs that are being stopped together, each with when all of them have ended. */
const leaving = new Map<string, Promise<void>>()

/** Waits for the current holder of the run, and requests a stop if a `reason` is given; then does `work` with the run. */
export async function withRun<T>(run_id: string, work: (lock: RunLock) => Promise<T>, reason?: string): Promise<T> {
	// Several may wait, and the next of them may be the one that executes the run: each one is notified.
	for (let holder = holders.get(run_id); holder; holder = holders.get(run_id)) {
		if (reason !== undefined) {
			holder.stoppedBy ??= causeNow()?.actor
			holder.controller.abort(reason)
		}
		await holder.over
	}
	const controller = new AbortController()
	const over = Promise.withResolvers<void>()
	const own: Holder = { controller, over: over.promise, writing: Promise.withResolvers() }
	holders.set(run_id, own)
	try {
		return await work({
			signal: controller.signal,
			get stoppedBy() {
				return own.stoppedBy
			},
			writes(log) {
				own.log = log
				own.writing.resolve()
			},
		})
	} finally {
		holders.delete(run_id)
		over.resolve()
	}
}

/** Stops these runs one after another. None of them begins to execute meanwhile, although each that ends makes room for one that waits. */
export async function stopTogether(
	run_ids: readonly string[],
	stop: (run_id: string) => Promise<unknown>,
): Promise<void> {
	const over = Promise.withResolvers<void>()
	for (const run_id of run_ids) leaving.set(run_id, over.promise)
	try {
		for (const run_id of run_ids) await stop(run_id)
	} finally {
		for (const run_id of run_ids) if (leaving.get(run_id) === over.promise) leaving.delete(run_id)
		over.resolve()
	}
}

/** Whether something works on the run, or stops it together with others. */
export function isHeld(run_id: string): boolean {
	return holders.has(run_id) || leaving.has(run_id)
}

function whenFree(run_id: string): Promise<void> | undefined {
	return leaving.get(run_id) ?? holders.get(run_id)?.over
}

/** Settles once `isHeld` is false. Throws the signal's reason. */
export async function untilFree(run_id: string, signal: AbortSignal): Promise<void> {
	for (let over = whenFree(run_id); over; over = whenFree(run_id)) {
		signal.throwIfAborted()
		const { promise, resolve, reject } = Promise.withResolvers<void>()
		const stay = onAbort(signal, () => reject(signal.reason as Error))
		void over.then(resolve)
		await promise.finally(stay)
	}
}

/** Does `work` if the run has no holder; otherwise skips it. */
export async function withFreeRun(run_id: string, work: () => Promise<void>): Promise<void> {
	if (!holders.has(run_id)) await withRun(run_id, work)
}

/** Appends events through the run's holder. False if it has none any more: then nothing was written. */
export async function appendByHolder(run_id: string, events: NewEvent[]): Promise<boolean> {
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
