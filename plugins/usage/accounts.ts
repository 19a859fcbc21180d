/** Accounts of runs: count their usage and their starts, and reserve model calls that a daily limit applies to. */
import type { Fault } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ModelUsage, Reservation, Usage } from '../../core/protocol.ts'
import { costText } from '../shared/cost-text.ts'
import { tryLater } from '../shared/try-later.ts'
import type {} from '../agents/contract.ts'
import { nothing, openBudget, sumOf } from './budget.ts'
import type { Amount, Budget } from './budget.ts'
import { addOp, usedBy } from './callers.ts'
import type { DayLimits, Payer, UsageService, UsageSettings } from './contract.ts'
import { dayOf, endOfDay, secondsLeft, today } from './days.ts'
import { countOps, entriesOf, freeSlot, slotOf, takeSlot } from './ledger.ts'
import type { DayEntry, Days } from './ledger.ts'

/** A budget and its limits. */
interface Limited {
	/** Whose limits these are, for the beginning of a message. */
	whose: string
	/** The setting that contains the limits. */
	setting: string
	limits: DayLimits
	budget: Budget
}

export function accountsOf(
	ctx: Pick<Context<UsageSettings>, 'config' | 'store' | 'use'>,
): Pick<UsageService, 'account' | 'countEnd' | 'start'> {
	const { config, store } = ctx
	/** Budgets of the agents and callers whose runs are being started or executed. */
	const budgets = new Map<string, { budget: Budget; users: number }>()
	const wholeGateway: Limited = {
		whose: 'the gateway',
		setting: 'usage.limits',
		limits: config.limits,
		budget: openBudget(async (day) => {
			const days = only(day)
			const amounts = [await amountIn(entriesOf(store, undefined, days))]
			for await (const { uid } of ctx.use('agents').list()) amounts.push(await amountIn(entriesOf(store, uid, days)))
			return sumOf(amounts)
		}),
	}

	/** Opens a budget by its name. It exists until all of its users have closed it. */
	const openFor = (name: string, read: (day: string) => Promise<Amount>): { budget: Budget; close: () => void } => {
		const known = budgets.get(name) ?? { users: 0, budget: openBudget(read) }
		known.users++
		budgets.set(name, known)
		const close = (): void => {
			if (--known.users === 0) budgets.delete(name)
		}
		return { budget: known.budget, close }
	}
	const openForAgent = ({ uid }: AgentRef) =>
		openFor(`agent ${uid}`, (day) => amountIn(entriesOf(store, uid, only(day))))
	const openForCaller = ({ id }: Payer) =>
		openFor(`caller ${id}`, (day) => usedBy(store, ctx.use('agents').list(), day, id))

	return {
		account(run_id, agent, limits, payer) {
			const own = openForAgent(agent)
			const callers = payer && openForCaller(payer)
			const slot = takeSlot(agent.uid)
			const limited: Limited[] = [
				{ whose: `agent "${agent.name}"`, setting: 'config.limits', limits, budget: own.budget },
				wholeGateway,
			]
			if (payer && callers)
				limited.push({ whose: payer.name, setting: 'its limits', limits: payer.limits, budget: callers.budget })
			const all = limited.filter((one) => isLimiting(one.limits))
			const usedIn = (calls: readonly ModelUsage[]): Amount => sumOf(calls.map(({ usage }) => amountOf(usage)))
			const settle = (calls: readonly ModelUsage[]): void => {
				for (const { budget } of all) budget.settle(run_id, usedIn(calls))
			}
			let isOpen = true
			return {
				isLimited: all.length > 0,
				async reserve(call) {
					const amount = { tokens: call.tokens, cost: call.cost ?? 0, runs: 0 }
					for (const one of all) {
						const refusal = await one.budget.reserve(run_id, amount, (used, others) =>
							refusalOf(one, call, used, others),
						)
						// The run may have ended during the wait.
						if (refusal || !isOpen) settle([])
						if (refusal) return refusal
					}
					return null
				},
				async count(calls, end) {
					const day = today()
					const ops = await countOps(store, agent, { day, slot, calls, end })
					if (ops.length > 0 && calls.length > 0 && payer)
						ops.push(await addOp(store, agent, { day, caller: payer.id, part: slot }, usedIn(calls)))
					return ops
				},
				settle,
				close() {
					if (!isOpen) return
					isOpen = false
					settle([])
					freeSlot(agent.uid, slot)
					own.close()
					callers?.close()
				},
			}
		},
		countEnd: (run_id, agent, end) => countOps(store, agent, { day: today(), slot: slotOf(run_id), calls: [], end }),
		start(run_id, agent, payer) {
			if (!payer) return { ops: async () => [], end() {} }
			const { budget, close } = openForCaller(payer)
			const one = { ...nothing, runs: 1 }
			// Separate from the id of the run, which may reserve a model call before its start is durable.
			const id = `start ${run_id}`
			return {
				async ops() {
					const refusal = await budget.reserve(id, one, (used, others) => startRefusal(payer, used, others))
					if (refusal) throw refusal
					return [await addOp(store, agent, { day: today(), caller: payer.id, part: 'starts' }, one)]
				},
				end(isStarted) {
					budget.settle(id, isStarted ? one : nothing)
					close()
				},
			}
		},
	}
}

/** Why a caller must not start another run today; null if it may. */
function startRefusal({ name, limits }: Payer, used: Amount, others: Amount): Fault | null {
	const { runs_per_day = Infinity, tokens_per_day = Infinity, cost_per_day = Infinity } = limits
	const refusal = (what: string): Fault =>
		tryLater('rate_limited', `${name} has ${what} for a day; the day ends at ${endOfDay()}`, secondsLeft())
	if (used.runs + others.runs >= runs_per_day) return refusal(`started its ${runs_per_day} runs (runs_per_day)`)
	if (used.tokens >= tokens_per_day)
		return refusal(`used ${used.tokens} of its ${tokens_per_day} tokens (tokens_per_day)`)
	if (used.cost >= cost_per_day)
		return refusal(`spent ${costText(used.cost)} of its ${costText(cost_per_day)} (cost_per_day)`)
	return null
}

function isLimiting({ tokens_per_day, cost_per_day }: DayLimits): boolean {
	return (tokens_per_day ?? cost_per_day ?? null) !== null
}

/** Why a call must not be made; null while usage and reservations are below the limits. So only the last call can exceed one. */
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
		const message = `the cost of ${provider} (${model}) is unknown, so ${setting}.cost_per_day of ${whose} cannot be enforced; set its price under providers.${provider}.prices in gateway.yaml (0 for a free model)`
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

function amountOf({ input_tokens, output_tokens, cost = 0 }: Usage): Amount {
	return { tokens: input_tokens + output_tokens, cost, runs: 0 }
}

function only(day: string): Days {
	return { since: day, until: dayOf(Date.parse(day), 1) }
}
