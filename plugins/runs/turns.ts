/**
 * One at a time for each run: whoever executes, stops or answers it. Kept apart from any instance of the plugin, since a
 * run that was begun by one instance may be stopped by the next.
 */
export interface Turn {
	/** Aborts when somebody wants the run stopped. */
	signal: AbortSignal
}

interface Holder {
	controller: AbortController
	over: Promise<void>
}

const holders = new Map<string, Holder>()

/** Waits for whoever has the run, then does `work` with it. */
export async function withRun<T>(run_id: string, work: (turn: Turn) => Promise<T>): Promise<T> {
	for (let holder = holders.get(run_id); holder; holder = holders.get(run_id)) await holder.over
	const controller = new AbortController()
	const over = Promise.withResolvers<void>()
	holders.set(run_id, { controller, over: over.promise })
	try {
		return await work({ signal: controller.signal })
	} finally {
		holders.delete(run_id)
		over.resolve()
	}
}

/** Asks whoever has the run to stop it. Settles once they have let go of it. */
export async function interrupt(run_id: string, reason: string): Promise<void> {
	const holder = holders.get(run_id)
	if (!holder) return
	holder.controller.abort(reason)
	await holder.over
}
