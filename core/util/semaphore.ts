/** Lets a number of pieces of work run at the same time; others wait for a place. */
export interface Semaphore {
	/** Settles with the release of a place, which may be called again. `isUrgent`: goes before those who wait. Throws the signal's reason. */
	take(signal?: AbortSignal, isUrgent?: boolean): Promise<() => void>
}

/** `hold_ms`: after this time a place is released by itself. */
export function openSemaphore(places: number, { hold_ms }: { hold_ms?: number } = {}): Semaphore {
	let free = places
	const waiting: (() => void)[] = []
	const release = (): void => {
		const next = waiting.shift()
		if (next) next() // it takes over the place
		else free++
	}
	const wait = async (signal: AbortSignal | undefined, isUrgent: boolean): Promise<void> => {
		const { promise, resolve, reject } = Promise.withResolvers<void>()
		const leave = (): void => {
			const at = waiting.indexOf(resolve)
			if (at !== -1) waiting.splice(at, 1)
			reject(signal?.reason as Error)
		}
		signal?.addEventListener('abort', leave, { once: true })
		if (isUrgent) waiting.unshift(resolve)
		else waiting.push(resolve)
		await promise.finally(() => signal?.removeEventListener('abort', leave))
	}
	return {
		async take(signal, isUrgent = false) {
			signal?.throwIfAborted()
			if (free > 0) free--
			else await wait(signal, isUrgent)
			let isHeld = true
			const giveBack = (): void => {
				clearTimeout(timer)
				if (isHeld) release()
				isHeld = false
			}
			const timer = hold_ms === undefined ? undefined : setTimeout(giveBack, hold_ms).unref()
			return giveBack
		},
	}
}
