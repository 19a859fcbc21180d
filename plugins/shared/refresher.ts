/** Does a task on request, one at a time and at limited intervals. */
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
