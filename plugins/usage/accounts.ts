/** The accounts of runs: what they use is counted, and reserved before where a limit of the day applies. */
import type { WireError } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ModelUsage, Reservation } from '../../core/protocol.ts'
import { costText } from '../../core/util/cost-text.ts'
import type {} from '../agents/contract.ts'
import { openBudget, sumOf } from './budget.ts'
import type { Amount, Budget } from './budget.ts'
import type { Account, DayLimits, UsageSettings } from './contract.ts'
import { dayOf, endOfDay, today } from './days.ts'
import { countOps, entriesOf, freeSlot, keptEntries, takeSlot } from './ledger.ts'
import type { DayEntry } from './ledger.ts'

/** Limits, and the budget that they bound. */
interface Limited {
	/** At the beginning of a message. */
	whose: string
	/** Where the limits are set. */
	setting: string
	limits: DayLimits
	budget: Budget
}

export function accountsOf(
	ctx: Pick<Context<UsageSettings>, 'config' | 'store' | 'use'>,
): (run_id: string, agent: AgentRef, limits: DayLimits) => Account {
	const { config, store } = ctx
	/** Of agents with limits whose runs are executed. */
	const budgets = new Map<string, { budget: Budget; accounts: number }>()
	const wholeGateway: Limited = {
		whose: 'the gateway',
		setting: 'usage.limits',
		limits: config.limits,
		budget: openBudget(async (day) => {
			const days = { since: day, until: dayAfter(day) }
			const amounts = [await amountIn(keptEntries(store, days))]
			for await (const { uid } of ctx.use('agents').list()) amounts.push(await amountIn(entriesOf(store, uid, days)))
			return sumOf(amounts)
		}),
	}

	const openFor = ({ uid }: AgentRef): Budget => {
		const known = budgets.get(uid) ?? {
			accounts: 0,
			budget: openBudget((day) => amountIn(entriesOf(store, uid, { since: day, until: dayAfter(day) }))),
		}
		known.accounts++
		budgets.set(uid, known)
		return known.budget
	}
	const closeFor = ({ uid }: AgentRef): void => {
		const known = budgets.get(uid)
		if (known && --known.accounts === 0) budgets.delete(uid)
	}

	return (run_id, agent, limits) => {
		const own: Limited = {
			whose: `agent "${agent.name}"`,
			setting: 'config.limits',
			limits,
			budget: openFor(agent),
		}
		const slot = takeSlot(agent.uid)
		const all = [own, wholeGateway].filter((one) => isLimiting(one.limits))
		const settle = (calls: readonly ModelUsage[]): void => {
			const used = sumOf(calls.map(({ usage }) => amountOf(usage)))
			for (const { budget } of all) budget.settle(run_id, used)
		}
		let isOpen = true
		return {
			isLimited: all.length > 0,
			async reserve(call) {
				const amount = { tokens: call.tokens, cost: call.cost ?? 0 }
				for (const one of all) {
					const refusal = await one.budget.reserve(run_id, amount, (used, others) => refusalOf(one, call, used, others))
					// The run may have ended while it waited.
					if (refusal || !isOpen) settle([])
					if (refusal) return refusal
				}
				return null
			},
			count: (calls) => countOps(store, agent, { day: today(), slot, calls }),
			settle,
			close() {
				if (!isOpen) return
				isOpen = false
				settle([])
				freeSlot(agent.uid, slot)
				closeFor(agent)
			},
		}
	}
}

function isLimiting({ tokens_per_day, cost_per_day }: DayLimits): boolean {
	return (tokens_per_day ?? cost_per_day ?? null) !== null
}

/** A call may be made as long as less than the limit is used and reserved: only the last one may exceed it. */
function refusalOf(
	{ whose, setting, limits }: Limited,
	{ provider, model, cost }: Reservation,
	used: Amount,
	others: Amount,
): WireError | null {
	const tokens_per_day = limits.tokens_per_day ?? Infinity
	const cost_per_day = limits.cost_per_day ?? Infinity
	const over = (what: string, name: keyof DayLimits, reserved: number): string => {
		const also = reserved > 0 ? `, and runs in progress have reserved ${costText(reserved)}` : ''
		return `${whose} has ${what} for a day (${setting}.${name})${also}; the day ends at ${endOfDay()}`
	}
	if (used.tokens + others.tokens >= tokens_per_day) {
		const what = `used ${used.tokens} of its ${tokens_per_day} tokens`
		return { code: 'limit_tokens', message: over(what, 'tokens_per_day', others.tokens) }
	}
	if (cost_per_day === Infinity) return null
	if (cost === undefined) {
		const message = `the cost of ${provider} (${model}) is unknown, so ${setting}.cost_per_day of ${whose} cannot be kept; set its price under providers.${provider}.prices in gateway.yaml (0 for a free model)`
		return { code: 'limit_cost', message }
	}
	if (used.cost + others.cost < cost_per_day) return null
	const what = `spent ${costText(used.cost)} of its ${costText(cost_per_day)}`
	return { code: 'limit_cost', message: over(what, 'cost_per_day', others.cost) }
}

async function amountIn(entries: AsyncIterable<DayEntry>): Promise<Amount> {
	const amounts: Amount[] = []
	for await (const { rows } of entries) amounts.push(...rows.map((row) => amountOf({ ...row, cost: row.cost ?? 0 })))
	return sumOf(amounts)
}

function amountOf({
	input_tokens,
	output_tokens,
	cost = 0,
}: {
	input_tokens: number
	output_tokens: number
	cost?: number
}): Amount {
	return { tokens: input_tokens + output_tokens, cost }
}

function dayAfter(day: string): string {
	return dayOf(Date.parse(day), 1)
}
