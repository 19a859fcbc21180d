/**
 * Group commit: writes that arrive while one LMDB transaction is being flushed to the disk form the next one. So a
 * single write waits for one sync of the disk, and a thousand at once share a few.
 *
 * lmdb-js puts all writes of one turn of the event loop into one transaction (`eventTurnBatching`). A synchronous
 * transaction would split them, so there must be none after opening. test/core/store/lmdb-kill.test.ts checks that.
 */
import { Fault, messageOf } from '../../errors.ts'
import type { Logger } from '../../log/log.ts'
import type { Env } from './env.ts'
import type { Reserve } from './reserve.ts'
import type { Table } from './tables.ts'
import { bytesPerWrite } from './space.ts'
import type { CommitSize, Space } from './space.ts'

/** A put, or without `bytes` a removal. */
export interface Write {
	table: Table
	key: string
	bytes?: Buffer | undefined
}

export interface Writer {
	/**
	 * Writes all or nothing. Settles once durable, after `settled(true)`; calls finish in the order in which they were made.
	 * Throws at once, without calling `settled`, if it refuses the write: `storage_full`, `unavailable`. If the commit fails,
	 * calls `settled(false)` and rejects.
	 */
	write(writes: Write[], settled?: (durable: boolean) => void): Promise<void>
	/** Null while writes are accepted; otherwise why not. */
	trouble(): string | null
	/** Throws `unavailable` once `drain` has been called: reading would fail as well. */
	mustBeOpen(): void
	/** True once a commit has failed: LMDB must no longer be used for writing, and closing it would never settle. */
	failed(): boolean
	/** Refuses new writes and settles once the accepted ones are durable, or have failed. */
	drain(): Promise<void>
}

interface Unit {
	writes: Write[]
	size: CommitSize
	settled: ((durable: boolean) => void) | undefined
	done: PromiseWithResolvers<void>
}

/** The approximate limit of one transaction, so that a long queue blocks neither the event loop nor LMDB: 2,000 small writes. */
const groupCost = 2000 * bytesPerWrite
/**
 * A transaction costs 0.3 ms of CPU time, however small. Under load, if one took less than this, the next one waits for
 * half of it, to collect more writes. A client that writes sequentially never waits.
 */
const quickMs = 2
/** The average backlog that counts as load: more than the few steps of a single run ever cause. */
const loadedBacklog = 3
/** Above this, new writes are refused until the disk has caught up. */
const maxBacklogBytes = 256 * 1024 * 1024
/** If the disk does not respond for this long, all writes fail, so that no caller waits forever. */
const diskTimeoutMs = 60_000

export function openWriter({ root }: Env, space: Space, reserve: Reserve, log?: Logger): Writer {
	/** Handed to LMDB. While `accepting`, until the turn of the event loop ends, more can be added. */
	let group: Unit[] | null = null
	let accepting = false
	let filled = 0
	let backlog: Unit[] = []
	let backlogBytes = 0
	/** How many writes arrive during a transaction, as a moving average. */
	let averageBacklog = 0
	let startedAt = 0
	let pause: NodeJS.Timeout | undefined
	/** The reserve is being extended; no transaction may begin meanwhile. */
	let extending = false
	let failure: Fault | null = null
	let draining: PromiseWithResolvers<void> | null = null
	const watchdog = setTimeout(() => {
		if (group || extending) giveUp(new Error(`the disk has not answered for ${diskTimeoutMs / 1000} s`))
	}, diskTimeoutMs).unref()

	root.on('beforecommit', () => {
		accepting = false
		const closed = group
		if (!closed) return
		// lmdb-js creates the promise of the whole transaction right after this event.
		queueMicrotask(() => void root.committed.then(() => finish(closed), fail))
	})

	const issue = (unit: Unit): void => {
		for (const { table, key, bytes } of unit.writes) {
			const promise = bytes ? table.put(key, bytes) : table.remove(key)
			// `fail` gets the error from the transaction; this promise would end the process as an unhandled rejection.
			if (promise !== lastPromise) promise.catch(fail)
			lastPromise = promise
		}
	}
	let lastPromise: Promise<boolean> | undefined

	const begin = (units: Unit[]): void => {
		group = units
		startedAt = performance.now()
		accepting = true
		filled = units.reduce((sum, { size }) => sum + size.cost, 0)
		lastPromise = undefined
		watchdog.refresh()
		for (const unit of units) issue(unit)
	}

	const beginNext = (): void => {
		clearTimeout(pause)
		pause = undefined
		if (backlog.length > 0) begin(takeGroup())
	}

	const finish = (finished: Unit[]): void => {
		if (failure) return
		group = null
		averageBacklog += (backlog.length - averageBacklog) / 16
		const wasQuick = performance.now() - startedAt < quickMs
		if (wasQuick && averageBacklog > loadedBacklog && !draining) pause = setTimeout(beginNext, quickMs / 2)
		else beginNext()
		let bytes = 0
		for (const unit of finished) {
			space.done(unit.size)
			bytes += unit.size.bytes
			unit.settled?.(true)
			unit.done.resolve()
		}
		extend(bytes)
		settleDrain()
	}

	const extend = (committed: number): void => {
		// The settled callers may have made the next write already.
		if (group || pause || draining) return
		const done = reserve.extend(committed)
		if (!done) return
		extending = true
		watchdog.refresh()
		void done.then(() => {
			extending = false
			if (failure) return
			beginNext()
			settleDrain()
		})
	}

	const settleDrain = (): void => {
		if (!group && !extending) draining?.resolve()
	}

	const takeGroup = (): Unit[] => {
		let cost = 0
		let count = 0
		for (const { size } of backlog) {
			cost += size.cost
			if (count > 0 && cost > groupCost) break
			backlogBytes -= size.bytes
			count++
		}
		return backlog.splice(0, count)
	}

	/** lmdb-js reports a failed commit twice: each promise is rejected, with a second promise that has the cause. */
	const fail = (error: unknown): void => {
		const why = (error as { commitError?: Promise<unknown> }).commitError
		if (why) why.catch(giveUp)
		else giveUp(error)
	}

	/** After a failed commit, whatever its cause, this process must not use LMDB for another one. */
	const giveUp = (error: unknown): void => {
		if (failure) return
		const full = /no space/i.test(messageOf(error)) || space.trouble() !== null
		failure = new Fault(
			full ? 'storage_full' : 'unavailable',
			`a write to the disk has failed (${reasonOf(error)}), so no more are accepted: ` +
				'check the disk, then restart the gateway',
			{ cause: error },
		)
		log?.error({ err: error }, 'the store accepts no more writes until the gateway is restarted')
		const lost = [...(group ?? []), ...backlog]
		clearTimeout(pause)
		group = null
		backlog = []
		backlogBytes = 0
		for (const unit of lost) space.done(unit.size)
		for (const unit of lost) unit.settled?.(false)
		for (const unit of lost) unit.done.reject(failure)
		draining?.resolve()
	}

	const mustBeOpen = (): void => {
		if (draining) throw new Fault('unavailable', 'the store is closed')
	}

	return {
		write(writes, settled) {
			if (failure) throw failure
			mustBeOpen()
			if (backlogBytes > maxBacklogBytes)
				throw new Fault('unavailable', 'the disk is too slow for the waiting writes: try again later')
			const size = sizeOf(writes)
			space.admit(size)
			const unit: Unit = { writes, size, settled, done: Promise.withResolvers() }
			if (!group && !pause && !extending) begin([unit])
			else if (group && accepting && backlog.length === 0 && filled + size.cost <= groupCost) {
				group.push(unit)
				filled += size.cost
				issue(unit)
			} else {
				backlog.push(unit)
				backlogBytes += size.bytes
			}
			return unit.done.promise
		},
		mustBeOpen,
		failed: () => failure !== null,
		trouble: () => failure?.message ?? space.trouble(),
		async drain() {
			draining ??= Promise.withResolvers()
			if (pause) beginNext()
			settleDrain()
			await draining.promise
			clearTimeout(watchdog)
		},
	}
}

function sizeOf(writes: Write[]): CommitSize {
	let bytes = 0
	let growing = false
	for (const write of writes) {
		bytes += write.key.length
		if (!write.bytes) continue
		bytes += write.bytes.length
		growing = true
	}
	return { bytes, cost: bytes + writes.length * bytesPerWrite, growing }
}

/** Without the buffer sizes that lmdb-js appends: the last ones are uninitialized memory. */
function reasonOf(error: unknown): string {
	return messageOf(error).replace(/: Attempting to write page.*/s, '')
}
