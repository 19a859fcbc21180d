export type CallTimer = ReturnType<typeof openCallTimer>

/**
 * Limits the time of a call: without progress, and in total. The time that a person needs to answer does not count. `expired` is
 * called once, with the limit that was reached.
 */
export function openCallTimer(
	{ idle_ms, total_ms }: { idle_ms: number; total_ms: number },
	expired: (limit: string) => void,
) {
	let left = total_ms
	let since = performance.now()
	let pauses = 0
	let isOver = false
	let timer: NodeJS.Timeout | undefined

	const run = (): void => {
		clearTimeout(timer)
		if (isOver || pauses > 0) return
		const now = performance.now()
		left -= now - since
		since = now
		const isTotal = left <= idle_ms
		timer = setTimeout(
			() => {
				isOver = true
				expired(isTotal ? `${total_ms / 1000} s in total` : `${idle_ms / 1000} s without progress`)
			},
			Math.max(0, Math.min(left, idle_ms)),
		)
	}
	run()
	return {
		/** The server reported progress. */
		progress: run,
		/** Stops the clock until the returned function is called. Several pauses may overlap. */
		pause(): () => void {
			if (pauses === 0) left -= performance.now() - since
			pauses++
			clearTimeout(timer)
			let isPaused = true
			return () => {
				if (!isPaused) return
				isPaused = false
				if (--pauses > 0) return
				since = performance.now()
				run()
			}
		},
		end(): void {
			isOver = true
			clearTimeout(timer)
		},
	}
}
