import { FairQueue } from './fair-queue.ts'
import { onAbort } from './on-abort.ts'
import { Shares } from './shares.ts'

/** Limits how many tasks run at the same time. Others wait for a place, and their owners take turns. */
export interface Semaphore {
	/**
	 * Waits for a place. Settles with the function that releases it, which may be called again. Throws the reason of an aborted
	 * signal.
	 */
	acquire(request?: PlaceRequest): Promise<() => void>
	/** The number of waiting callers, of this owner or in all. */
	waiting(owner?: string): number
	/** Settles once no place is in use. */
	idle(): Promise<void>
	/** To be called after the number of places has grown. */
	update(): void
}

export interface PlaceRequest {
	/** Ends the wait. */
	signal?: AbortSignal | undefined
	/** In whose share it counts, such as the uid of an agent. Default: all such callers are one owner. */
	owner?: string
	/** `urgent`: served before all others. `background`: served after the others of the same owner. Default: neither. */
	priority?: 'urgent' | 'background' | undefined
}

export interface SemaphoreOptions {
	/** After this time, in milliseconds, a place is released automatically. */
	hold_ms?: number
	/** Further places, which only owners with few places get (`Shares.may`). */
	reserve?: number | (() => number)
}

/** `places`: how many tasks run at the same time; a function if the number changes. */
export function openSemaphore(
	places: number | (() => number),
	{ hold_ms, reserve = 0 }: SemaphoreOptions = {},
): Semaphore {
	const shares = new Shares(
		() => (typeof places === 'number' ? places : places()),
		() => (typeof reserve === 'number' ? reserve : reserve()),
	)
	const urgent = new FairQueue<() => void>()
	const others = new FairQueue<() => void>()
	const may = (owner: string): boolean => shares.may(owner)
	/** Each call of `next` takes its place synchronously, so `may` sees it. */
	const update = (): void => {
		for (let next = urgent.next(may) ?? others.next(may); next; next = urgent.next(may) ?? others.next(may)) next()
	}
	/** Thousands may wait, so each waiting caller allocates little. */
	const wait = ({ signal, owner = '', priority }: PlaceRequest): Promise<void> => {
		const queue = priority === 'urgent' ? urgent : others
		const { promise, resolve, reject } = Promise.withResolvers<void>()
		const begin = (): void => {
			stay?.()
			shares.add(owner)
			resolve()
		}
		const leave = (): void => {
			stay?.()
			if (queue.delete(owner, begin)) reject(signal?.reason as Error)
		}
		const stay = signal && onAbort(signal, leave)
		queue.add(owner, begin, priority === 'background')
		return promise
	}
	let whenIdle: PromiseWithResolvers<void> | undefined
	return {
		async acquire(request = {}) {
			const { signal, owner = '' } = request
			signal?.throwIfAborted()
			if (shares.may(owner)) shares.add(owner)
			else await wait(request)
			let isHeld = true
			const release = (): void => {
				clearTimeout(timer)
				if (!isHeld) return
				isHeld = false
				shares.remove(owner)
				update()
				if (shares.used > 0) return
				whenIdle?.resolve()
				whenIdle = undefined
			}
			const timer = hold_ms === undefined ? undefined : setTimeout(release, hold_ms).unref()
			return release
		},
		waiting: (owner) => (owner === undefined ? urgent.size + others.size : urgent.sizeOf(owner) + others.sizeOf(owner)),
		async idle() {
			if (shares.used > 0) await (whenIdle ??= Promise.withResolvers()).promise
		},
		update,
	}
}
