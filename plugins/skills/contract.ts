import type { AgentRef } from '../../core/plugin.ts'
import type { Approver } from '../agents/contract.ts'

export type SkillStatus = 'active' | 'quarantined'

/** A skill as clients see it. */
export interface Skill {
	id: string
	name: string
	description: string
	status: SkillStatus
	installed_at: string
}

/** A program's permissions; everything undeclared is denied. */
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

/** The origin of a document. */
export type Source = { kind: 'inline' } | { kind: 'url'; url: string; resolved_url: string }

/** Something in a document that a reviewer should check. */
export interface Finding {
	/** Stable, such as `invisible-characters`. */
	rule: string
	severity: 'high' | 'medium' | 'low'
	/** Line of the document, from 1. */
	line: number
	/** At most 160 characters, with invisible characters written as `\u{…}`. */
	excerpt: string
	message: string
}

/** A skill with everything needed to decide on its approval. */
export interface SkillReview extends Skill {
	/** sha256 of the document's bytes, in hex: what an approval names. */
	digest: string
	source: Source
	/** Bytes. */
	size: number
	/** The tool's name for the model. */
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
	/** The active revision of this name that an approval replaces. */
	replaces: string | null
	/** Unified, against that revision; null if there is none. */
	diff: string | null
	/** The exact program text; null for instructions. */
	program: string | null
	/** The document's line on which it begins, from 1. */
	program_line: number | null
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
	/** The active ones: the agent's skills during runs. */
	active(agent: AgentRef): Promise<Skill[]>
	/** Installs into quarantine. Throws `skill_invalid`; `conflict` if the agent has too many. */
	install(agent: AgentRef, markdown: string, source: Source): Promise<Skill>
	/** Throws `not_found`. */
	review(agent: AgentRef, skill_id: string): Promise<SkillReview>
	/**
	 * Approves each, unless it is already active, replacing the active revision of its name. Approves none and throws
	 * `not_found` (naming one that the agent does not have), or `forbidden` for a program that gets secrets if the
	 * approver may not grant them.
	 */
	approve(agent: AgentRef, skill_ids: readonly string[], approver: Approver): Promise<void>
	/** The same for one, as reviewed: throws `digest_mismatch` if its document has changed since. */
	approveReviewed(agent: AgentRef, skill_id: string, digest: string, approver: Approver): Promise<Skill>
	/** Throws `not_found`. */
	remove(agent: AgentRef, skill_id: string): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Services {
		skills: Skills
	}
}

export type SkillCode =
	| 'skill_invalid'
	| 'skill_failed'
	| 'sandbox_timeout'
	| 'sandbox_memory'
	| 'sandbox_crash'
	| 'sandbox_busy'

declare module '../../core/errors.ts' {
	interface ErrorCodes extends Record<SkillCode, true> {}
}

declare module '../../config/types.ts' {
	interface Config {
		skills: SkillSettings
	}
}
