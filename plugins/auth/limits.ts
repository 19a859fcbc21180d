import type { NumberSchema, Root } from 'joi'
import type { Payer } from '../usage/contract.ts'

/** What one caller may use. Absent: no limit. */
export interface CallerLimits extends Readonly<Payer['limits']> {
	/** Counted by each gateway of a cluster. */
	readonly requests_per_minute?: number
	/** Event streams and WebSockets that are open at the same time. */
	readonly streams?: number
}

const LARGEST = 1_000_000_000

/** The schemas of the limits. `ending`: a sentence that ends each description. */
export function limitFields(joi: Root, ending = ''): Record<keyof CallerLimits, NumberSchema> {
	const count = (what: string) =>
		joi
			.number()
			.integer()
			.min(1)
			.max(LARGEST)
			.description(what + ending)
	return {
		requests_per_minute: count('Requests in a minute, to each gateway.').example(600),
		streams: count('Event streams and WebSockets open at the same time.').example(20),
		runs_per_day: count('Runs that it starts on one day (UTC); sub-agents do not count.').example(1000),
		tokens_per_day: count('Input and output tokens of its runs on one day (UTC).').example(2_000_000),
		cost_per_day: joi
			.number()
			.positive()
			.max(LARGEST)
			.description(`Cost of its runs on one day (UTC), as the models are priced.${ending}`)
			.example(20),
	}
}
