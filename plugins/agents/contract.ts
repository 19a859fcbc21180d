import type { AgentLimit } from '../shared/agent-limit.ts'
import type { AgentRef, ToolDefinition } from '../../core/plugin.ts'
import type { RunLimits } from '../../core/protocol.ts'
import type { ModelParams } from '../../sandbox/order.ts'

/** The configuration of an agent; further keys are stored, and ignored by the gateway. */
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
	limits?: Partial<AgentLimits> & {
		/** Of all its runs in one day (UTC); cost in the currency of the providers' prices. */
		tokens_per_day?: number
		cost_per_day?: number
	}
	/** IANA time zone of the time that its model gets; default: the machine's. */
	timezone?: string
	context?: ContextConfig
	/** False: its model gets only the persona. */
	preamble?: boolean
	/** If `recall` is false, its model does not get memories automatically with a prompt. */
	memory?: { recall?: boolean }
	/** Which tools it may use, and which calls need approval. */
	tools?: ToolPolicy
	/** They take precedence over those of its provider. */
	params?: ModelParams
	/** In tokens; replaces that of its provider. */
	context_window?: number
	[key: string]: unknown
}

/** The limits that an agent may set for its runs. */
export interface AgentLimits extends RunLimits {
	/** Characters of a tool result that a model sees. Of a longer result it sees the beginning and the end. */
	result_characters: number
}

/** How much of a conversation a model gets, and what happens to the rest. */
export interface ContextConfig {
	/** Maximum tokens of one request, if the model's window is larger. */
	tokens?: number
	/** Whether the model summarizes turns that requests omit. Default true. */
	summary?: boolean
	/** Whether facts of these turns are stored in long-term memory. Default: only if no strangers can have written them. */
	facts?: boolean
}

/** Lists of patterns for the names of tools; `*` matches any characters. */
export interface ToolPolicy {
	/** Called without approval. */
	allow?: string[]
	/** Neither offered nor called. */
	deny?: string[]
	/** Each call waits for approval. */
	ask?: string[]
}

export type Ruling = 'allow' | 'deny' | 'ask'

export interface AgentsSettings {
	max_agents: number
}

export interface AgentRecord extends AgentRef {
	persona: string | null
	config: AgentConfig
	created_at: string
	/** Set while its deletion is in progress: outside of this plugin it does not exist. */
	deleting?: true
}

/** Reading agents. All readers share the records, which must not be changed, and may be frozen. */
export type AgentReader = Pick<Agents, 'get' | 'find' | 'list'>

export interface Agents {
	/** Throws `not_found`. */
	get(name: string): Promise<AgentRecord>
	find(name: string): Promise<AgentRecord | undefined>
	/** By name. */
	list(): AsyncIterable<AgentRecord>
	/** Only the agents that a caller can see. */
	visibleTo(caller: AgentLimit): AgentReader
	/** Throws `already_exists`, or `conflict` if there are `agents.max_agents` already. */
	create(input: { name: string; persona?: string | null; config?: AgentConfig }): Promise<AgentRecord>
	/**
	 * Changes the given fields; keys of `config` are merged, and a key set to null is removed. `first` is called after the
	 * change was checked and before it is written, and again after a conflict; an error from it prevents the change.
	 * Throws `not_found`.
	 */
	update(
		name: string,
		change: { persona?: string | null; config?: Record<string, unknown> },
		first?: (agent: AgentRecord) => Promise<void>,
	): Promise<AgentRecord>
	/** Stops its runs and removes everything that belongs to it; its events stay. Throws `not_found`. */
	remove(name: string): Promise<void>
	/**
	 * What the policy of an agent (`config.tools`) decides about a tool. `deny` takes precedence over `ask`, and `ask` over
	 * `allow`. The pattern `*` alone means the tools that no other pattern names. A tool that no pattern matches is allowed, or
	 * asks if it is destructive.
	 */
	rulingOn(policy: ToolPolicy | undefined, tool: Pick<ToolDefinition, 'name' | 'shown_as' | 'destructive'>): Ruling
}

/** What another plugin contributes to agents; the extension point `agent`. */
export interface AgentExtension {
	/** Stops work for an agent that is being deleted, before its records are removed. Called again after a crash. */
	forget?(agent: AgentRef): Promise<void>
	skills?: AgentSkills
}

/** The caller who approves, as in its credentials. */
export interface Approver {
	/** Null for a local caller without a token. */
	token_id: string | null
	/** Approving a program that gets secrets requires `vault:write` or `*`. */
	scope: readonly string[]
}

/** What the agents' routes need from the skills feature. */
export interface AgentSkills {
	/** The skills that the agent's runs can use. */
	active(agent: AgentRef): Promise<{ id: string; name: string }[]>
	/** Approves all of them or none. `approver`: the caller, as in its credentials. Throws if one is unknown. */
	approve(agent: AgentRef, skill_ids: readonly string[], approver: Approver): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Services {
		agents: Agents
	}
	interface Extensions {
		agent: AgentExtension
	}
}
