/** A run's slot among the concurrent calls of a provider. A run makes one call at a time, so it has at most one slot. */
import { unawaited } from './run-log.ts'
import type { Work } from './work.ts'

/** `over`: aborts when the execution ends. `hold` stops the wall clock of the run until the returned function is called. */
export function openModelSlot(work: Work, over: AbortSignal, hold: () => () => void) {
	const { ctx, agent, log, lock } = work
	let release: (() => void) | undefined
	const leave = (): void => {
		release?.()
		release = undefined
	}
	return {
		/** Settles once the run has a slot, or has ended. Waiting does not count as active time. */
		async take(provider: string, model: string): Promise<null> {
			const resume = hold()
			const began = performance.now()
			// Not earlier: most providers have no limit, and a combined signal is expensive.
			const signal = AbortSignal.any([lock.signal, over])
			const onWait = (): void => unawaited(log.append([{ event_type: 'model.queued', payload: { provider, model } }]))
			try {
				release = await ctx.use('models').slot(provider, agent.uid, signal, onWait)
			} catch (error) {
				if (!signal.aborted) throw error
			} finally {
				work.waited_ms += performance.now() - began
				resume()
			}
			if (signal.aborted) leave()
			return null
		},
		leave,
	}
}
