/**
 * A lock for each run: only one holder executes, stops or changes the run at a time. Not part of a plugin instance, since a
 * run that one instance executes may be stopped by the next.
 */
import { isFault } from '../../core/errors.ts'
import { causeNow } from '../../core/util/context.ts'
import type { Actor } from '../../core/util/context.ts'
import { TransientMap } from '../../core/util/transient-map.ts'
import { unlessAborted } from '../../core/util/unless-aborted.ts'
import type { NewEvent } from '../../core/protocol.ts'
import type { RunLog } from './run-log.ts'

/** The lock, as its holder gets it. */
export interface RunLock {
	/** Aborts when the run is to be stopped. */
	signal: AbortSignal
	/** Who requested the stop, if that is known. */
	stoppedBy(): Actor | undefined
	/** The gateway that lent the thread has left the cluster: the run continues, and this does not count as a failed attempt. */
	departed?: boolean
	/** Lets others append to this log; see `appendByHolder`. */
	writes(log: RunLog): void
}

interface Holder {
	controller: AbortController
	stoppedBy?: Actor | undefined
	released: Promise<void>
	log?: RunLog
	/** Settles when `log` is set. */
	writing: PromiseWithResolvers<void>
}

const holders = new TransientMap<string, Holder>()
/** Runs that are being stopped together. Each promise settles when all of its group have ended. */
const stopping = new Map<string, Promise<void>>()

/** Waits until the lock of the run is free, and asks its holder to stop if a `reason` is given; then does `work` with the lock. */
export async function withRun<T>(run_id: string, work: (lock: RunLock) => Promise<T>, reason?: string): Promise<T> {
	// Others may wait too, and the next holder may be one that executes the run: so every holder is asked to stop.
	for (let holder = holders.get(run_id); holder; holder = holders.get(run_id)) {
		if (reason !== undefined) {
			holder.stoppedBy ??= causeNow()?.actor
			holder.controller.abort(reason)
		}
		await holder.released
	}
	const controller = new AbortController()
	const released = Promise.withResolvers<void>()
	const own: Holder = { controller, released: released.promise, writing: Promise.withResolvers() }
	holders.set(run_id, own)
	try {
		return await work({
			signal: controller.signal,
			stoppedBy: () => own.stoppedBy,
			writes(log) {
				own.log = log
				own.writing.resolve()
			},
		})
	} finally {
		holders.delete(run_id)
		released.resolve()
	}
}

/** Stops these runs one after another. None of them begins to execute meanwhile, although each stopped run frees a place. */
export async function stopTogether(
	run_ids: readonly string[],
	stop: (run_id: string) => Promise<unknown>,
): Promise<void> {
	const stopped = Promise.withResolvers<void>()
	for (const run_id of run_ids) stopping.set(run_id, stopped.promise)
	try {
		for (const run_id of run_ids) await stop(run_id)
	} finally {
		for (const run_id of run_ids) if (stopping.get(run_id) === stopped.promise) stopping.delete(run_id)
		stopped.resolve()
	}
}

/** Whether the run has a holder, or is being stopped together with others. */
export function isHeld(run_id: string): boolean {
	return holders.has(run_id) || stopping.has(run_id)
}

function whenFree(run_id: string): Promise<void> | undefined {
	return stopping.get(run_id) ?? holders.get(run_id)?.released
}

/** Settles once `isHeld` is false. Throws the signal's reason. */
export async function untilFree(run_id: string, signal: AbortSignal): Promise<void> {
	for (let free = whenFree(run_id); free; free = whenFree(run_id)) await unlessAborted(signal, free)
}

/** Does `work` if the run has no holder; otherwise skips it, and returns false. */
export async function withFreeRun(run_id: string, work: () => Promise<unknown>): Promise<boolean> {
	if (holders.has(run_id)) return false
	await withRun(run_id, work)
	return true
}

/** Appends events through the run's holder. False if it has none any more: then nothing was written. */
export async function appendByHolder(run_id: string, events: NewEvent[]): Promise<boolean> {
	for (let holder = holders.get(run_id); holder; holder = holders.get(run_id)) {
		await Promise.race([holder.writing.promise, holder.released])
		try {
			if (!holder.log) continue
			await holder.log.append(events)
			return true
		} catch (error) {
			if (!isFault(error, 'stopped')) throw error
			await holder.released // its log is closed: the run has just ended, paused, or lost its thread
		}
	}
	return false
}
