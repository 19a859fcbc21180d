/** Returns a function that requests `work`. It runs one at a time, with at least `everyMs` in between. `work` must not reject. */
export function openRefresher(everyMs: number, work: () => void | Promise<void>): () => void {
	let due = false
	let busy = false
	const run = async (): Promise<void> => {
		busy = true
		while (due) {
			due = false
			await work()
			await new Promise((resolve) => setTimeout(resolve, everyMs).unref())
		}
		busy = false
	}
	return () => {
		due = true
		if (!busy) void run()
	}
}
