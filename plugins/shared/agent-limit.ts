/** Which agents a caller may know of: a token can be for some of them. */
import { Fault } from '../../core/errors.ts'
import { matches } from '../../core/util/pattern.ts'

/** A part of every caller's credentials. */
export interface AgentLimit {
	/** Patterns of names, with `*`; absent: all agents. */
	readonly agents?: readonly string[]
}

/** Whether the caller may know of an agent of this name. */
export function reaches({ agents }: AgentLimit, name: string): boolean {
	return !agents || agents.some((pattern) => matches(pattern, name))
}

/** For an agent that does not exist, and for one that the caller may not know of: the two must not differ. */
export function unknownAgent(name: string): Fault {
	return new Fault('not_found', `there is no agent "${name}"`, {
		hint: { route: 'POST /v1/agents', does: 'creates one' },
	})
}
