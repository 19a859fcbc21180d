/** Keys of the records of sub-agents: in the agent's scope, by parent run and by the call that started them. */
import { hash } from 'node:crypto'
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key } from '../../core/store/ports.ts'

type Uid = AgentRef['uid']

export const keys = {
	spawned: (uid: Uid, parent: string, call: string): Key => [agentScope(uid), 'subagent', parent, call],
	/** All sub-agents of one run. */
	family: (uid: Uid, parent: string): Key => [agentScope(uid), 'subagent', parent],
	all: (uid: Uid): Key => [agentScope(uid), 'subagent'],
}

/** A short id from a call's key, which may be long. */
export function callId(key: string): string {
	return hash('sha256', key).slice(0, 32)
}

/** Each sub-agent has a conversation of its own. */
export function conversationOf(call: string): string {
	return `subagent:${call}`
}

/** The id of the call that started a sub-agent's conversation; undefined for other conversations. */
export function callOf(conversation: string): string | undefined {
	return conversation.startsWith('subagent:') ? conversation.slice('subagent:'.length) : undefined
}
