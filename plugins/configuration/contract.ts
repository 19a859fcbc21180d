/** The answers of the routes, also for the console. */
import type { FieldError } from '../../core/errors.ts'

/** `pending`: the gateway has not read the current file yet. */
type FileState = 'in_force' | 'refused' | 'pending'

export interface FileView {
	file: string
	/** With placeholders for secrets. */
	text: string
	/** Of the whole text; a change must state it, so that it does not overwrite another change. */
	digest: string
	state: FileState
	/** Why the file is refused. */
	error: string | null
	errors: FieldError[]
}

/** `before` and `after`: JSON values, absent if the setting is at its default or unknown. Secrets are hidden. */
export interface SettingChange {
	path: string
	before?: unknown
	after?: unknown
	/** It takes effect only at the next start. */
	needs_restart: boolean
}

export interface ConfigVerdict {
	valid: boolean
	/** All problems, one per line, with line and column. */
	error: string | null
	errors: FieldError[]
	/** Valid settings that should be changed nevertheless. */
	warnings: string[]
	/** Empty for an invalid text. */
	changes: SettingChange[]
}
