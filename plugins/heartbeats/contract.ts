import type { AgentRef, ToolCall } from '../../core/plugin.ts'
import type { Deliver } from '../runs/contract.ts'

/** When a heartbeat fires. Exactly one of `cron`, `every` and `at` is set. */
export interface Schedule {
	/** Five fields, or six with seconds in front. */
	cron: string | null
	/** IANA name; for `cron` only. */
	timezone: string | null
	/** An interval such as `30m`. */
	every: string | null
	/** ISO 8601. The heartbeat fires once and is then deleted. */
	at: string | null
}

/** What clients see of a heartbeat. */
export interface Heartbeat extends Schedule {
	id: string
	prompt: string
	/** Where the answers of its runs go. */
	deliver: Deliver
	created_at: string
	/** Null while it is paused. */
	next_at: string | null
	paused: boolean
	/** When it last started a run; null before the first. */
	last_at: string | null
}

export interface HeartbeatRequest {
	cron?: string
	/** The timezone of `cron`, or of an `at` without an offset. Default: the agent's `config.timezone`; for `cron` otherwise UTC. */
	timezone?: string
	every?: string
	/** ISO 8601, or such as `in 20 minutes`. */
	at?: string
	prompt: string
	/** Default: the chat of the run that makes the call, else `none`. */
	deliver?: Deliver
}

/** Absent fields stay unchanged. A new `cron`, `every` or `at` replaces the schedule. */
export type HeartbeatChange = Partial<HeartbeatRequest> & { paused?: boolean }

/** A call with an idempotency key: a repeated call with the same `key` has no further effect. */
export type Repeatable = Pick<ToolCall, 'key' | 'emit'> & Partial<Pick<ToolCall, 'run_id'>>

export interface Heartbeats {
	/** Oldest first. */
	list(agent: AgentRef): Promise<Heartbeat[]>
	/** Throws `invalid_request` for an invalid schedule or `deliver`, `conflict` if the agent has reached its limit. */
	create(agent: AgentRef, request: HeartbeatRequest, call?: Repeatable): Promise<Heartbeat>
	/**
	 * The interval of a changed or resumed schedule starts now. Throws like `create`, `not_found`, and `unavailable` if a beat is in
	 * progress for longer than a few seconds.
	 */
	change(agent: AgentRef, id: string, change: HeartbeatChange, call?: Repeatable): Promise<Heartbeat>
	/** Runs that it started continue. Throws `not_found`, also for a heartbeat of another agent. */
	remove(agent: AgentRef, id: string, call?: Repeatable): Promise<void>
}

export interface HeartbeatSettings {
	max_per_agent: number
	/** Beats that were missed for longer than this are skipped. */
	missed_grace_s: number
}

declare module '../../core/plugin.ts' {
	interface Services {
		heartbeats: Heartbeats
	}
}

declare module '../../config/types.ts' {
	interface Config {
		heartbeats: HeartbeatSettings
	}
}
