/** Where sub-agents stand: in their agent's scope, below the run that started them, by the call that did. */
import { createHash } from 'node:crypto'
import type { AgentRef } from '../../core/plugin.ts'
import type { Key } from '../../core/store/ports.ts'

type Uid = AgentRef['uid']

const scopeOf = (uid: Uid): string => `agent:${uid}`

export const keys = {
	spawned: (uid: Uid, parent: string, call: string): Key => [scopeOf(uid), 'subagent', parent, call],
	/** Those that one run started. */
	family: (uid: Uid, parent: string): Key => [scopeOf(uid), 'subagent', parent],
	all: (uid: Uid): Key => [scopeOf(uid), 'subagent'],
}

/** From a call's key, which may be long. */
export function callId(key: string): string {
	return createHash('sha256').update(key).digest('hex').slice(0, 32)
}

/** Each sub-agent has a conversation of its own. */
export function conversationOf(call: string): string {
	return `subagent:${call}`
}

/** The call that began a sub-agent's conversation; undefined for any other conversation. */
export function callOf(conversation: string): string | undefined {
	return conversation.startsWith('subagent:') ? conversation.slice('subagent:'.length) : undefined
}
