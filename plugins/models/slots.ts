/** Limits the concurrent calls of a provider, for all threads, including those that other gateways lend. */
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { openSemaphore } from '../../core/util/semaphore.ts'
import type { Semaphore } from '../../core/util/semaphore.ts'
import type { Models, Provider } from './contract.ts'

interface Slots {
	semaphore: Semaphore
	most: number
}

/** By provider. Not part of a plugin instance: calls in progress keep their slots when the settings change. */
const slots = new BoundedMap<string, Slots>(256)

/** `inForce`: settles once the settings apply; the generation that has them may fail to start. */
export function slotsOf(
	providers: ReadonlyMap<string, Provider>,
	inForce: Promise<void> = Promise.resolve(),
): Models['slot'] {
	for (const [name, { max_concurrent_calls: most = Infinity }] of providers) {
		const known = slots.get(name)
		if (known) {
			void inForce.then(() => {
				known.most = most
				known.semaphore.update()
			})
		} else if (most < Infinity) slots.set(name, open(most))
	}
	return async (provider, owner, signal, onWait) => {
		const semaphore = slots.get(provider)?.semaphore
		if (!semaphore) return () => {}
		const before = semaphore.waiting()
		const taken = semaphore.acquire({ signal, owner })
		if (semaphore.waiting() > before) onWait()
		return taken
	}
}

function open(most: number): Slots {
	const made: Slots = { semaphore: openSemaphore(() => made.most), most }
	return made
}
