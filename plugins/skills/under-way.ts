import type { Fault } from '../../core/errors.ts'

/** Running calls of skills, so that they can be ended. */
export interface UnderWay {
	/** `run`'s signal aborts with the reason of `end` or `finish`. */
	track<T>(skill_id: string, run: (ended: AbortSignal) => Promise<T>): Promise<T>
	/** Ends the calls of one skill. */
	end(skill_id: string, reason: Fault): void
	/** Settles when no call is running; those that are not over in `ms` are ended. */
	finish(ms: number, reason: Fault): Promise<void>
}

export function openUnderWay(): UnderWay {
	const calls = new Map<AbortController, string>()
	let idle = Promise.withResolvers<void>()
	return {
		async track(skill_id, run) {
			const ended = new AbortController()
			calls.set(ended, skill_id)
			try {
				return await run(ended.signal)
			} finally {
				calls.delete(ended)
				if (calls.size === 0) idle.resolve()
			}
		},
		end(skill_id, reason) {
			for (const [call, id] of calls) if (id === skill_id) call.abort(reason)
		},
		async finish(ms, reason) {
			if (calls.size === 0) return
			idle = Promise.withResolvers()
			using _ = setTimeout(() => {
				for (const call of calls.keys()) call.abort(reason)
			}, ms)
			await idle.promise
		},
	}
}
