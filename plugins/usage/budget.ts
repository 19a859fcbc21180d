/**
 * The daily budget of one agent, one caller, or all agents. Usage is in the ledger, and survives a crash. Reservations exist in
 * memory only, while their run is started or executed, so a crash leaves none behind.
 */
import { roundCost } from '../../core/protocol.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import { today } from './days.ts'

export interface Amount {
	tokens: number
	cost: number
	/** Started runs; counted only for callers. */
	runs: number
}

export const nothing: Amount = { tokens: 0, cost: 0, runs: 0 }

export interface Budget {
	/** Replaces the reservation of this id, unless `refuse` returns a refusal. Resolves to the refusal, or to null. */
	reserve<T>(
		id: string,
		amount: Amount,
		refuse: (used: Amount, reservedByOthers: Amount) => T | null,
	): Promise<T | null>
	/** Removes the reservation of this id, after `used` was written to the ledger. */
	settle(id: string, used: Amount): void
}

/** Maximum share of the time that is spent reading the ledger. Between reads, settled usage is added to the last result. */
const READING_SHARE = 1 / 20

/** `read`: reads the usage of a day from the ledger. */
export function openBudget(read: (day: string) => Promise<Amount>): Budget {
	const reserved = new Map<string, Amount>()
	// One after another: concurrent decisions would not see each other's reservations.
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
