/**
 * What is used and reserved of a day's budget, for one agent, one caller or all. What is used is in the ledger and survives a
 * crash; a reservation exists in memory, for as long as its run is started or executed here, so a crash leaves none behind.
 */
import { roundCost } from '../../core/protocol.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import { today } from './days.ts'

export interface Amount {
	tokens: number
	cost: number
	/** Runs that were started; counted only for callers. */
	runs: number
}

export const nothing: Amount = { tokens: 0, cost: 0, runs: 0 }

export interface Budget {
	/** Adds the reservation of this id, in place of its last one, unless `refuse` returns something. Resolves to that, or to null. */
	reserve<T>(
		id: string,
		amount: Amount,
		refuse: (used: Amount, reservedByOthers: Amount) => T | null,
	): Promise<T | null>
	/** Ends that reservation, after `used` was written to the ledger. */
	settle(id: string, used: Amount): void
}

/** The ledger is read for at most this share of the time: in between, what is settled here is added to what was read. */
const READING_SHARE = 1 / 20

/** `read`: what the ledger has of a day. */
export function openBudget(read: (day: string) => Promise<Amount>): Budget {
	const reserved = new Map<string, Amount>()
	// One after another: two that decide at once would not see each other.
	const queue = openSerialQueue()
	let known = { day: '', used: nothing, until: 0 }

	const usedToday = async (): Promise<Amount> => {
		const day = today()
		const began = performance.now()
		if (known.day === day && began < known.until) return known.used
		const used = await read(day)
		const took = performance.now() - began
		known = { day, used, until: began + took / READING_SHARE }
		return used
	}

	return {
		reserve: (id, amount, refuse) =>
			queue.run(async () => {
				const used = await usedToday()
				const others = [...reserved].flatMap(([other, one]) => (other === id ? [] : [one]))
				const refusal = refuse(used, sumOf(others))
				if (refusal === null) reserved.set(id, amount)
				else reserved.delete(id)
				return refusal
			}),
		settle(id, used) {
			reserved.delete(id)
			if (known.day === today()) known.used = sumOf([known.used, used])
		},
	}
}

export function sumOf(amounts: readonly Amount[]): Amount {
	const sum = { ...nothing }
	for (const { tokens, cost, runs } of amounts) {
		sum.tokens += tokens
		sum.runs += runs
		sum.cost = roundCost(sum.cost + cost)
	}
	return sum
}
