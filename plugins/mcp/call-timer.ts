export type CallTimer = ReturnType<typeof openCallTimer>

/**
 * How long a call may take: without progress, and in total. Time that a person needs to answer does not count. `expired` is called
 * once, with the limit that was reached.
 */
export function openCallTimer(
	{ idle_ms, total_ms }: { idle_ms: number; total_ms: number },
	expired: (what: string) => void,
) {
	let left = total_ms
	let since = performance.now()
	let holds = 0
	let over = false
	let timer: NodeJS.Timeout | undefined

	const run = (): void => {
		clearTimeout(timer)
		if (over || holds > 0) return
		const now = performance.now()
		left -= now - since
		since = now
		const isTotal = left <= idle_ms
		timer = setTimeout(
			() => {
				over = true
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
		hold(): () => void {
			if (holds === 0) left -= performance.now() - since
			holds++
			clearTimeout(timer)
			let held = true
			return () => {
				if (!held) return
				held = false
				if (--holds > 0) return
				since = performance.now()
				run()
			}
		},
		end(): void {
			over = true
			clearTimeout(timer)
		},
	}
}
