import type { AgentRef } from '../../core/plugin.ts'

/** What an agent knows about itself and its people: a short text, in every prompt. */
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
	 * Durable when it settles; the previous content is kept among the versions. `content`: at most 2,048 bytes of UTF-8, empty
	 * for no profile. Writing the same content again changes nothing. `expected_version`: throws `conflict` if the profile has
	 * another one.
	 */
	write(agent: AgentRef, content: string, expected_version?: number): Promise<Profile>
	/** The latest 20 earlier ones, newest first; the last one of a young profile is the empty one before it. */
	versions(agent: AgentRef): Promise<Profile[]>
	/** Restores the previous version. May be repeated as long as there is one. Throws `conflict` otherwise. */
	undo(agent: AgentRef): Promise<Profile>
}

declare module '../../core/plugin.ts' {
	interface Services {
		profile: Profiles
	}
}
