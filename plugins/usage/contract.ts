import type { AgentLimit } from '../shared/agent-limit.ts'
import type { WireError } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { ModelUsage, Reservation, Usage } from '../../core/protocol.ts'
import type { Op } from '../../core/store/ports.ts'

/** A caller with daily limits. The runs that are started on its behalf count toward them. Days begin at midnight UTC. */
export interface Payer {
	/** Identifies the caller in keys of the store. */
	id: string
	/** The caller's name for people, for the beginning of a message. */
	name: string
	limits: {
		runs_per_day?: number
		/** Input and output tokens. */
		tokens_per_day?: number
		/** In the operator's currency. */
		cost_per_day?: number
	}
}

/** Limits of one day (UTC); null or absent: none. */
export interface DayLimits {
	/** Input and output tokens. */
	tokens_per_day?: number | null
	/** In the operator's currency. */
	cost_per_day?: number | null
}

export interface UsageSettings {
	/** Days that usage is kept. */
	retention_days: number
	/** For all agents together. */
	limits: DayLimits
}

/** Usage of several model calls. */
export interface Counted extends Required<Omit<Usage, 'cost'>> {
	/** Answers of models, including empty and continued ones. */
	calls: number
	/** Cost of the calls whose model had a price; those of the offline provider cost 0. Null if there were none. */
	cost: number | null
	/** Input and output tokens of calls whose model had no price: `cost` does not include them. */
	unpriced_tokens: number
}

/** Completed and failed runs, and estimated quantiles of the seconds that they were active; null without runs. */
export interface RunFigures {
	completed: number
	failed: number
	p50_s: number | null
	p95_s: number | null
}

/** The end of a run that was not stopped. */
export interface RunEnd {
	status: 'completed' | 'failed'
	/** Without the time that the run waited for people. */
	active_ms: number
}

/** `runs` is absent in reports by model. */
export type UsageRow = Counted & {
	agent_id?: string
	provider?: string
	model?: string
	day?: string
	runs?: RunFigures
}

export interface UsageReport {
	/** The first day, and the day after the last one. */
	since: string
	until: string
	by: UsageBy
	rows: UsageRow[]
	total: Counted & { runs: RunFigures }
}

export type UsageBy = 'agent' | 'model' | 'day'

export interface UsageQuery {
	/** The agent's name; usage of deleted agents of that name is included. */
	agent_id?: string
	/** Days, as `2026-11-02`: from `since` on, before `until`. */
	since: string
	until: string
	by: UsageBy
}

/** The account of one run, for as long as it is executed. */
export interface Account {
	/** A daily limit applies: each model call must be reserved. */
	readonly isLimited: boolean
	/** Reserves a call; this replaces the last reservation. Resolves to the reason why the call must not be made, or to null. */
	reserve(call: Reservation): Promise<WireError | null>
	/**
	 * Returns the writes that count these calls, for the commit of the answer, and the end of the run, for the commit that ends it.
	 * So each is counted exactly once. No writes if the agent was deleted. Called again after a conflict.
	 */
	count(calls: readonly ModelUsage[], end?: RunEnd): Promise<Op[]>
	/** Ends the reservation of these calls, after they were counted. */
	settle(calls: readonly ModelUsage[]): void
	/** Ends a reservation that remains, when the execution of the run ends. */
	close(): void
}

/** The start of one run, which counts toward the limits of its caller. */
export interface RunStart {
	/**
	 * The write that counts it, for the commit that starts it. Throws `rate_limited` if the caller has used up a daily limit.
	 * Called again after a conflict.
	 */
	ops(): Promise<Op[]>
	/** Must be called when the run was started, or could not be started. */
	end(isStarted: boolean): void
}

/** The usage of model calls: counted by agent, day and model, and limited per day. */
export interface UsageService {
	/** Opens the account of a run. `payer`: the caller toward whose limits it also counts. */
	account(run_id: string, agent: AgentRef, limits: DayLimits, payer?: Payer): Account
	/** As `Account.count`, for a run that ends without being executed. */
	countEnd(run_id: string, agent: AgentRef, end: RunEnd): Promise<Op[]>
	/** Counts the start of a run on behalf of this caller. */
	start(run_id: string, agent: AgentRef, payer: Payer | undefined): RunStart
	/** Keeps the usage of an agent that is being deleted. Called once its runs have ended; may be repeated. */
	keep(agent: AgentRef): Promise<void>
	/** Throws `not_found` for an agent that has no usage and does not exist. */
	report(query: UsageQuery, caller?: AgentLimit): Promise<UsageReport>
}

declare module '../../core/util/context.ts' {
	interface Cause {
		readonly payer?: Payer | undefined
	}
}

declare module '../../core/plugin.ts' {
	interface Services {
		usage: UsageService
	}
}

declare module '../../config/types.ts' {
	interface Config {
		usage: UsageSettings
	}
}
