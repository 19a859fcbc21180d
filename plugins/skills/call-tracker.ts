import type { Fault } from '../../core/errors.ts'

export type CallTracker = ReturnType<typeof openCallTracker>

/** Tracks the calls of skills that are in progress, so that they can be ended. */
export function openCallTracker() {
	const calls = new Map<AbortController, string>()
	let idle = Promise.withResolvers<void>()
	return {
		/** The signal for `run` aborts with the reason of `end` or `finish`. */
		async track<T>(skill_id: string, run: (ended: AbortSignal) => Promise<T>): Promise<T> {
			const ended = new AbortController()
			calls.set(ended, skill_id)
			try {
				return await run(ended.signal)
			} finally {
				calls.delete(ended)
				if (calls.size === 0) idle.resolve()
			}
		},
		/** Ends the calls of one skill. */
		end(skill_id: string, reason: Fault): void {
			for (const [call, id] of calls) if (id === skill_id) call.abort(reason)
		},
		/** Settles when no call is in progress. Ends those that are still in progress after `ms`. */
		async finish(ms: number, reason: Fault): Promise<void> {
			if (calls.size === 0) return
			idle = Promise.withResolvers()
			using _ = setTimeout(() => {
				for (const call of calls.keys()) call.abort(reason)
			}, ms)
			await idle.promise
		},
	}
}
