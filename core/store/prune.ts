/** Shared by every engine's removal of old events. */
import { Fault } from '../errors.ts'
import { BoundedMap } from '../util/bounded-map.ts'
import { timeOf } from './events.ts'

/** Pruning ends after so many young records in a row; fewer may come from a clock that was set back. */
export const youngInARow = 1000
/** Runs for which the result of `keep` is cached. */
const rememberedRuns = 10_000

export interface Pruning {
	/** ISO 8601. */
	before: string
	keep: (run: string) => Promise<boolean>
}

/** `before` in milliseconds since 1970, and `keep` with a cache. Throws `invalid_request` for an invalid time. */
export function pruningOf({ before, keep }: Pruning): { before: number; isKept(run: string | null): Promise<boolean> } {
	const time = timeOf(before, Number.NaN)
	if (Number.isNaN(time)) throw new Fault('invalid_request', 'prune needs a time')
	const kept = new BoundedMap<string, boolean>(rememberedRuns)
	return {
		before: time,
		async isKept(run) {
			if (run === null) return false
			const answer = kept.get(run) ?? (await keep(run))
			kept.set(run, answer)
			return answer
		},
	}
}
