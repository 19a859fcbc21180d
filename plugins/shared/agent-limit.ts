/** The agents that a caller may access: a token can be limited to some agents. */
import { Fault } from '../../core/errors.ts'
import { matches } from '../../core/util/pattern.ts'

/** A part of every caller's credentials. */
export interface AgentLimit {
	/** Patterns of names, with `*`; absent: all agents. */
	readonly agents?: readonly string[]
}

/** Whether the caller may access the agent of this name. */
export function reaches({ agents }: AgentLimit, name: string): boolean {
	return !agents || agents.some((pattern) => matches(pattern, name))
}

/** The same error for an agent that does not exist and for one that the caller may not access: callers must not see a difference. */
export function unknownAgent(name: string): Fault {
	return new Fault('not_found', `there is no agent "${name}"`, {
		hint: { route: 'POST /v1/agents', does: 'creates one' },
	})
}
