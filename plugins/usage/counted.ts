import { roundCost } from '../../core/protocol.ts'
import type { ModelUsage } from '../../core/protocol.ts'
import type { Counted } from './contract.ts'

/** The usage of one model. */
export type ModelRow = Counted & { provider: string; model: string }

/** Models with separate rows in one record; further models are counted as `other`. */
const MODELS_LIMIT = 64
const OTHER = 'other'
const SUMS = ['calls', 'input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens', 'unpriced_tokens'] as const

export function nothing(): Counted {
	return {
		calls: 0,
		input_tokens: 0,
		output_tokens: 0,
		cached_tokens: 0,
		reasoning_tokens: 0,
		cost: null,
		unpriced_tokens: 0,
	}
}

/** Adds to `sum`. */
export function addCounted(sum: Counted, more: Counted): void {
	for (const name of SUMS) sum[name] += more[name]
	if (more.cost !== null) sum.cost = roundCost((sum.cost ?? 0) + more.cost)
}

/** The same rows with these calls added. */
export function withCalls(rows: readonly ModelRow[], calls: readonly ModelUsage[]): ModelRow[] {
	const result = rows.map((row) => ({ ...row }))
	for (const call of calls) addCounted(rowFor(result, call), countedOf(call))
	return result
}

function countedOf({ usage }: ModelUsage): Counted {
	const { input_tokens, output_tokens, cached_tokens = 0, reasoning_tokens = 0, cost = null } = usage
	const unpriced_tokens = cost === null ? input_tokens + output_tokens : 0
	return { calls: 1, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, unpriced_tokens }
}

function rowFor(rows: ModelRow[], { provider, model }: Pick<ModelUsage, 'provider' | 'model'>): ModelRow {
	const known = rows.find((row) => row.provider === provider && row.model === model)
	if (known) return known
	const isOther = provider === OTHER && model === OTHER
	if (rows.length >= MODELS_LIMIT && !isOther) return rowFor(rows, { provider: OTHER, model: OTHER })
	const row = { provider, model, ...nothing() }
	rows.push(row)
	return row
}
