import type { AgentRef } from '../../core/plugin.ts'

/** A short text in every prompt: what the agent knows about itself and its people. */
export interface Profile {
	/** Empty if there is none. */
	content: string
	/** 0 if it was never written; every change, an undo included, adds 1. */
	version: number
	/** Null if it was never written. */
	updated_at: string | null
}

export interface Profiles {
	read(agent: AgentRef): Promise<Profile>
	/**
	 * Replaces the profile; the previous content is kept as a version. Durable when it settles. `content`: at most 2,048 bytes of
	 * UTF-8, empty for no profile. Writing the same content again changes nothing. `expected_version`: throws `conflict` if the
	 * profile has another version.
	 */
	write(agent: AgentRef, content: string, expected_version?: number): Promise<Profile>
	/** The latest 20 earlier versions, newest first. Includes the empty version before the first write, until it is the 21st. */
	versions(agent: AgentRef): Promise<Profile[]>
	/** Restores the previous version. May be repeated as long as there is one. Throws `conflict` otherwise. */
	undo(agent: AgentRef): Promise<Profile>
}

declare module '../../core/plugin.ts' {
	interface Services {
		profile: Profiles
	}
}
