/** What every engine's removal of old events has in common. */
import { Fault } from '../errors.ts'
import { BoundedMap } from '../util/bounded-map.ts'
import { timeOf } from './events.ts'

/** The clock may have stepped: the rest counts as young only after so many young records in a row. */
export const youngInARow = 1000
/** Runs whose `keep` is remembered. */
const rememberedRuns = 10_000

export interface Pruning {
	/** ISO 8601. */
	before: string
	keep: (run: string) => Promise<boolean>
}

/** The time, and a check of runs that remembers its answers. */
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
