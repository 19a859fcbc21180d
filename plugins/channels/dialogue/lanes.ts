/** One thing at a time in each chat, in the order in which it was wished for; different chats side by side. */
import type { Logger } from '../../../core/log.ts'

export interface Lanes extends AsyncDisposable {
	/** Does it once everything before it in this lane is done. */
	push(lane: string, job: () => Promise<void>): void
	/** Does it now, or not at all where the lane is busy. `wanted` aborts once something else waits behind it. */
	offer(lane: string, job: (wanted: AbortSignal) => Promise<void>): boolean
	/** Jobs that wait or are under way. */
	length(lane: string): number
}

export function openLanes(log: Logger): Lanes {
	const lanes = new Map<string, { last: Promise<void>; length: number; wanted?: AbortController }>()

	const push = (name: string, job: () => Promise<void>): void => {
		const lane = lanes.get(name) ?? { last: Promise.resolve(), length: 0 }
		lanes.set(name, lane)
		lane.length++
		lane.wanted?.abort()
		lane.last = lane.last.then(async () => {
			try {
				await job()
			} catch (error) {
				log.error({ err: error }, 'a message to a chat could not be worked on')
			} finally {
				if (--lane.length === 0) lanes.delete(name)
			}
		})
	}
	return {
		push,
		offer(name, job) {
			if (lanes.has(name)) return false
			const wanted = new AbortController()
			push(name, () => job(wanted.signal))
			Object.assign(lanes.get(name) ?? {}, { wanted })
			return true
		},
		length: (name) => lanes.get(name)?.length ?? 0,
		async [Symbol.asyncDispose]() {
			await Promise.all([...lanes.values()].map(({ last }) => last))
		},
	}
}
