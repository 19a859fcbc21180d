/** How many connections are made at the same time, so that a thousand servers do not start at once. */
export interface Slots {
	/** Settles when it is this one's turn. `hurry`: somebody waits for it, so it goes first. */
	take(signal: AbortSignal, hurry: boolean): Promise<() => void>
}

const AT_ONCE = 6
/** One that hangs keeps its place no longer than this. */
const HOLD_LIMIT_MS = 5_000

export function openSlots(): Slots {
	let free = AT_ONCE
	const waiting: (() => void)[] = []
	const release = (): void => {
		const next = waiting.shift()
		if (next) next() // it takes over the place
		else free++
	}
	return {
		async take(signal, hurry) {
			signal.throwIfAborted()
			if (free > 0) free--
			else {
				const { promise, resolve, reject } = Promise.withResolvers<void>()
				const left = (): void => {
					const at = waiting.indexOf(resolve)
					if (at !== -1) waiting.splice(at, 1)
					reject(signal.reason as Error)
				}
				signal.addEventListener('abort', left, { once: true })
				if (hurry) waiting.unshift(resolve)
				else waiting.push(resolve)
				await promise.finally(() => signal.removeEventListener('abort', left))
			}
			let held = true
			const giveBack = (): void => {
				clearTimeout(timer)
				if (held) release()
				held = false
			}
			const timer = setTimeout(giveBack, HOLD_LIMIT_MS)
			timer.unref()
			return giveBack
		},
	}
}
