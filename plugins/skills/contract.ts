import type { AgentRef } from '../../core/plugin.ts'

export type SkillStatus = 'active' | 'quarantined'

/** What clients see of a skill. */
export interface Skill {
	id: string
	name: string
	description: string
	status: SkillStatus
	installed_at: string
}

/** What a program may use; what is not declared is denied. */
export interface Permissions {
	/** Names of primitives. */
	primitives: string[]
	/** Hosts for `svc.fetch`, whole names: `host` (any port) or `host:port`; https and public addresses only. */
	hosts: string[]
	/** Names of secrets. */
	secrets: string[]
}

export interface Parameter {
	name: string
	type: 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object'
	required: boolean
	description: string
	default?: unknown
	enum?: (string | number | boolean)[]
}

/** Where a document came from. */
export type Source = { kind: 'inline' } | { kind: 'url'; url: string; resolved_url: string }

/** Something in a document that who approves it should look at. */
export interface Finding {
	/** Stable, such as `invisible-characters`. */
	rule: string
	severity: 'high' | 'medium' | 'low'
	/** The document's; 1 is the first. */
	line: number
	/** At most 160 characters, with what is invisible written as `\u{…}`. */
	excerpt: string
	message: string
}

/** A skill with all that its approval is decided on. */
export interface SkillReview extends Skill {
	/** sha256 of the document's bytes, in hex: what an approval names. */
	digest: string
	source: Source
	/** Bytes. */
	size: number
	/** The tool's name that a model sees. */
	tool: string
	approved_at: string | null
	/** Id of the token that approved it; null for a local caller without one. */
	approved_by: string | null
	/** Null for instructions. */
	runtime: 'javascript' | null
	parameters: Parameter[]
	permissions: Permissions
	metadata: Record<string, unknown>
	warnings: string[]
	findings: Finding[]
	/** The active revision of this name that an approval takes out. */
	replaces: string | null
	/** Unified, against that revision; null where there is none. */
	diff: string | null
	markdown: string
}

export interface SkillSettings {
	allow_private_urls: boolean
	processes: number
	max_waiting: number
	memory_mib: number
	process_mib: number
	cpu_s: number
	wall_time_s: number
	max_per_agent: number
}

export interface Skills {
	/** Newest last. */
	list(agent: AgentRef): Promise<Skill[]>
	/** Those that are active: what the agent has during runs. */
	active(agent: AgentRef): Promise<Skill[]>
	/** Into quarantine. Throws `skill_invalid`; `conflict` where the agent has too many. */
	install(agent: AgentRef, markdown: string, source: Source): Promise<Skill>
	/** Throws `not_found`. */
	review(agent: AgentRef, skill_id: string): Promise<SkillReview>
	/**
	 * Approves each, unless it is active already, in place of the active revision of its name. Throws `not_found`, naming the
	 * one that the agent does not have; then none is approved. `by`: the token's id.
	 */
	approve(agent: AgentRef, skill_ids: readonly string[], by?: string): Promise<void>
	/** The same for one, as it was reviewed: throws `digest_mismatch` where its document is another one by now. */
	approveReviewed(agent: AgentRef, skill_id: string, digest: string, by?: string): Promise<Skill>
	/** Throws `not_found`. */
	remove(agent: AgentRef, skill_id: string): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Services {
		skills: Skills
	}
}
