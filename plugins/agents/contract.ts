import type { AgentRef } from '../../core/plugin.ts'
import type { RunLimits } from '../../core/protocol.ts'

/** What an agent may set; further keys are kept as they are and mean nothing to the gateway. */
export interface AgentConfig {
	/** The model's name at the provider. */
	model?: string
	/** A name under `providers` in gateway.yaml. */
	provider?: string
	/** 0–2. */
	temperature?: number
	max_tokens?: number
	/** Providers to try, in order, when the first fails. */
	fallback?: string[]
	limits?: Partial<RunLimits>
	[key: string]: unknown
}

export interface AgentRecord extends AgentRef {
	persona: string | null
	config: AgentConfig
	created_at: string
	/** Set while its deletion is under way; to everybody else it is gone already. */
	deleting?: true
}

export interface Agents {
	/** Throws `not_found`. */
	get(name: string): Promise<AgentRecord>
	find(name: string): Promise<AgentRecord | undefined>
	/** By name. */
	list(): AsyncIterable<AgentRecord>
	/** Throws `already_exists`. */
	create(input: { name: string; persona?: string | null; config?: AgentConfig }): Promise<AgentRecord>
	/**
	 * Changes what is given; keys of `config` are merged, one set to null is taken out. `first` is called once the change
	 * was checked and before it is written, and again where somebody else was faster; what it throws stops the change.
	 * Throws `not_found`.
	 */
	update(
		name: string,
		change: { persona?: string | null; config?: Record<string, unknown> },
		first?: (agent: AgentRecord) => Promise<void>,
	): Promise<AgentRecord>
	/** Stops its runs and removes everything that is its own; its events stay. Throws `not_found`. */
	remove(name: string): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Services {
		agents: Agents
	}
}
