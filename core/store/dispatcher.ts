/**
 * The job queue in memory, shared by the engines: waiting jobs, leases and delays. Whatever must survive the process is
 * stored by `Backing`.
 */
import { addAbortListener } from 'node:events'
import { messageOf } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { Heap } from '../util/heap.ts'
import { TIMER_LIMIT_MS } from '../util/timer-limit.ts'
import { invalid, isName, maxNameBytes } from './keys.ts'
import type { Job, Lease, RunQueue } from './ports.ts'

/** Where jobs are stored, by their position in the queue. If a call rejects, nothing was written. */
export interface Backing {
	/** Throws synchronously if it refuses the job. */
	add(place: number, job: Job): Promise<void>
	/** Stores how often the job was handed out, and its delay from now. */
	mark(place: number, attempt: number, delayMs: number): Promise<void>
	remove(place: number, id: string): Promise<void>
	/** Throws `store_damaged`. */
	load(place: number, id: string): Job
}

/** A job that existed when the engine was opened. */
export interface Recovered {
	place: number
	id: string
	/** How often it was handed out before. */
	attempt: number
	/** Milliseconds from now. */
	delayMs: number
}

/** What an engine stores about a job that was handed out. */
export interface Tries {
	attempt: number
	/** Milliseconds since 1970: the job must not be handed out before; 0 for at once. */
	due: number
	/** The requested delay in milliseconds. A clock that is set back must not make it longer. */
	delay: number
}

/** `delayMs`: the delay from now; 0 for none. */
export function triesOf(attempt: number, delayMs: number): Tries {
	return { attempt, due: delayMs > 0 ? Date.now() + delayMs : 0, delay: delayMs }
}

/** The attempt and the remaining delay when the gateway starts. `stored`: absent for a job that was never handed out. */
export function remaining(stored: Tries | undefined): Pick<Recovered, 'attempt' | 'delayMs'> {
	const { attempt, due, delay } = stored ?? triesOf(0, 0)
	return { attempt, delayMs: Math.min(Math.max(0, due - Date.now()), delay) }
}

interface WaitingJob extends Pick<Recovered, 'place' | 'id' | 'attempt'> {
	/** For a job that is not durable yet: the job itself, since the backing cannot return it yet. */
	fresh?: Job
	/** It could not be written. */
	gone?: true
}

/** While jobs wait, a claimer at its limit reads `max` again at this interval: the limit may have been raised. */
const limitPollMs = 200

/** Makes the queue from the jobs that exist already. Jobs are handed out in the order of their places. */
export function openDispatcher(backing: Backing, recovered: readonly Recovered[], log?: Logger) {
	/** Ids in use, of waiting, delayed and leased jobs. The promise settles once the job is durable. */
	const unfinished = new Map<string, Promise<void>>()
	const ready = new Heap<WaitingJob>((a, b) => a.place < b.place)
	const delayTimers = new Set<NodeJS.Timeout>()
	/** Settles at the next change for which a claimer may wait. */
	let changed = Promise.withResolvers<void>()
	let nextPlace = 1
	let closed = false

	const wake = (): void => {
		changed.resolve()
		changed = Promise.withResolvers()
	}

	const wait = (job: WaitingJob, delayMs: number): void => {
		if (delayMs > 0) {
			if (closed) return
			const part = Math.min(Math.ceil(delayMs), TIMER_LIMIT_MS)
			const timer = setTimeout(() => {
				delayTimers.delete(timer)
				wait(job, delayMs - part)
			}, part)
			delayTimers.add(timer)
			return
		}
		ready.push(job)
		wake()
	}

	for (const job of recovered) {
		unfinished.set(job.id, Promise.resolve())
		nextPlace = Math.max(nextPlace, job.place + 1)
		wait(job, job.delayMs)
	}

	const leaseOf = (waiting: WaitingJob, job: Job, returned: () => void, isCounted: boolean): Lease => {
		const { place, id } = waiting
		const attempt = waiting.attempt + 1
		let state: 'held' | 'acked' | 'released' = 'held'
		let hasBegun = false
		const begin = (): void => {
			if (hasBegun) return
			hasBegun = true
			// Not awaited: it becomes durable before anything that the holder writes later, so a crash that leaves any
			// trace of this attempt leaves its count too. On a full disk the count is lost.
			backing.mark(place, attempt, 0).catch(() => {})
		}
		if (isCounted) begin()
		return {
			job,
			attempt,
			begin,
			async ack() {
				if (state === 'released') return
				// Also on a second call: the first may have failed.
				const removed = backing.remove(place, id)
				if (state === 'held') {
					state = 'acked'
					// At once: from here on, an `enqueue` of this id means a new job.
					unfinished.delete(id)
					returned()
				}
				await removed
			},
			async release(delayMs = 0) {
				if (state !== 'held') return
				state = 'released'
				if (hasBegun) waiting.attempt = attempt
				const marked = hasBegun || delayMs > 0 ? backing.mark(place, waiting.attempt, delayMs) : undefined
				wait(waiting, delayMs)
				returned()
				await marked
			},
		}
	}

	/** A lease of the next job that can be read. */
	const take = (returned: () => void, isCounted: boolean): Lease | undefined => {
		for (let waiting = ready.pop(); waiting; waiting = ready.pop()) {
			if (waiting.gone) continue
			try {
				return leaseOf(waiting, waiting.fresh ?? backing.load(waiting.place, waiting.id), returned, isCounted)
			} catch (error) {
				log?.error({ err: error, job: waiting.id }, `a job cannot be handed out: ${messageOf(error)}`)
			}
		}
		return undefined
	}

	async function* claim(max: () => number, signal: AbortSignal, isCounted = true): AsyncGenerator<Lease> {
		let held = 0
		const returned = (): void => {
			held--
			wake()
		}
		using _ = addAbortListener(signal, wake)
		while (!signal.aborted && !closed) {
			const lease = ready.size > 0 && held < max() ? take(returned, isCounted) : undefined
			if (lease) {
				held++
				yield lease
				continue
			}
			using _timer = ready.size > 0 ? setTimeout(wake, limitPollMs) : undefined
			await changed.promise
		}
	}

	const queue: RunQueue = {
		async enqueue(job) {
			if (!isName(job.id)) throw invalid(`a job's id must have 1 to ${maxNameBytes} bytes and no NUL`)
			const known = unfinished.get(job.id)
			if (known) return known
			const place = nextPlace++
			const adding = backing.add(place, job)
			// Handed out at once: the job becomes durable before anything that its holder writes.
			const waiting: WaitingJob = { place, id: job.id, attempt: 0, fresh: job }
			wait(waiting, 0)
			const added = adding.then(
				() => void delete waiting.fresh,
				(error: unknown) => {
					waiting.gone = true
					unfinished.delete(job.id)
					throw error
				},
			)
			unfinished.set(job.id, added)
			await added
		},
		claim,
		waiting: () => ready.size + delayTimers.size,
	}
	return {
		queue,
		/** Ends every claim and clears all timers. */
		close(): void {
			closed = true
			for (const timer of delayTimers) clearTimeout(timer)
			wake()
		},
	}
}
