import type { AgentRef } from '../../core/plugin.ts'
import type { Approver } from '../agents/contract.ts'
import type { FileInfo } from './file-kind.ts'
import type { LeftOut, SkillFolder } from './folder/contract.ts'

export type SkillStatus = 'active' | 'quarantined'

/** A skill as clients see it. */
export interface Skill {
	id: string
	name: string
	description: string
	status: SkillStatus
	installed_at: string
}

/** The permissions that a program declares. Everything else is denied. */
export interface Permissions {
	/** Names of primitives. */
	primitives: string[]
	/** Hosts for `svc.fetch`, complete names: `host` (any port) or `host:port`. Only https and public addresses are allowed. */
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

/** The origin of a skill: text or files in a request, an archive in a request, or an address. */
export type Source = { kind: 'inline' } | { kind: 'archive' } | { kind: 'url'; url: string; resolved_url: string }

/** A file of a skill, as its review lists it. */
export interface ReviewedFile extends FileInfo {
	/** Against the active revision; null if there is none. */
	change: 'added' | 'changed' | 'same' | null
}

/** The content of one file: `text`, or `base64` if it is not UTF-8 text. */
export interface FileContent extends FileInfo {
	text?: string
	base64?: string
}

/** Something in a file that a reviewer should check. */
export interface Finding {
	/** Path of the file. */
	file: string
	/** Stable, such as `invisible-characters`. */
	rule: string
	severity: 'high' | 'medium' | 'low'
	/** Line of the file, from 1. */
	line: number
	/** At most 160 characters, with invisible characters written as `\u{…}`. */
	excerpt: string
	message: string
}

/** A skill with everything needed to decide on its approval. */
export interface SkillReview extends Skill {
	/** The digest of all files, in hex, that an approval refers to. See folder/digest.ts. */
	digest: string
	source: Source
	/** Bytes of all files. */
	size: number
	/** In the order in which the digest covers them. */
	files: ReviewedFile[]
	/** Files of the active revision that this one does not have. */
	removed_files: string[]
	/** Other entries of the archive, which are not installed. */
	left_out: LeftOut[]
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
	/** A unified diff of all text files against that revision; null if there is none. */
	diff: string | null
	/** The exact program text; null for instructions. */
	program: string | null
	/** The document's line on which the program begins, from 1. */
	program_line: number | null
	markdown: string
}

/** An active skill that a person can use outside of a run. */
export interface UsableSkill {
	name: string
	description: string
	parameters: Parameter[]
	/** Null for a program, and for a skill with other files: these need the agent. */
	instructions: string | null
	/**
	 * The validated arguments, with defaults. The texts are used as they are for parameters of the type `string`, and parsed as
	 * JSON for others. Throws `invalid_arguments`.
	 */
	read(args: Readonly<Record<string, string>>): Record<string, unknown>
}

export interface SkillSettings {
	allow_private_urls: boolean
	processes: number
	waiting_processes: number
	max_waiting: number
	memory_mib: number
	process_mib: number
	cpu_s: number
	wall_time_s: number
	max_per_agent: number
	max_mib_per_agent: number
}

export interface Skills {
	/** Newest last. */
	list(agent: AgentRef): Promise<Skill[]>
	/** The active skills, which runs of the agent have. */
	active(agent: AgentRef): Promise<Pick<Skill, 'id' | 'name'>[]>
	/** The active skills in the form for people, sorted by name. */
	usable(agent: AgentRef): Promise<UsableSkill[]>
	/** Installs into quarantine. Throws `skill_invalid`, and `conflict` if the number or size of the agent's skills exceeds a limit. */
	install(agent: AgentRef, folder: SkillFolder, source: Source): Promise<Skill>
	/** Throws `not_found`. */
	review(agent: AgentRef, skill_id: string): Promise<SkillReview>
	/** A file of any revision, for its review. Throws `not_found`. */
	file(agent: AgentRef, skill_id: string, path: string): Promise<FileContent>
	/**
	 * Approves all of these skills, or none. Each replaces the active revision of its name. Skips those that are already active.
	 * Throws `not_found` (naming a skill that the agent does not have), and `forbidden` for a program that gets secrets if the
	 * approver may not grant them.
	 */
	approve(agent: AgentRef, skill_ids: readonly string[], approver: Approver): Promise<void>
	/** The same for one skill. Throws `digest_mismatch` if its files have changed since the review. */
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
	| 'skill_ambiguous'
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
