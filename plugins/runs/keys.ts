/** Where the records of runs stand. All but the index lie in the agent's own scope, so one commit can change them together. */
import type { AgentRef } from '../../core/plugin.ts'
import type { Key } from '../../core/store/ports.ts'

type Uid = AgentRef['uid']

export const scopeOf = (uid: Uid): string => `agent:${uid}`

export const keys = {
	run: (uid: Uid, run: string): Key => [scopeOf(uid), 'run', run],
	/** What a run was given for itself. */
	given: (uid: Uid, run: string): Key => [scopeOf(uid), 'given', run],
	/** Every run of an agent; ids sort by time. */
	runs: (uid: Uid): Key => [scopeOf(uid), 'run'],
	/** The runs of one conversation, in order. */
	turn: (uid: Uid, conversation: string, run: string): Key => [scopeOf(uid), 'turn', conversation, run],
	turns: (uid: Uid, conversation: string): Key => [scopeOf(uid), 'turn', conversation],
	lane: (uid: Uid, conversation: string): Key => [scopeOf(uid), 'lane', conversation],
	lanes: (uid: Uid): Key => [scopeOf(uid), 'lane'],
	question: (uid: Uid, question: string): Key => [scopeOf(uid), 'question', question],
	questions: (uid: Uid): Key => [scopeOf(uid), 'question'],
	/** The tokens of a family of runs, by the run at its top. */
	family: (uid: Uid, top: string): Key => [scopeOf(uid), 'family', top],
	idempotency: (uid: Uid, hash: string): Key => [scopeOf(uid), 'idempotency', hash],
	idempotencies: (uid: Uid): Key => [scopeOf(uid), 'idempotency'],
	session: (uid: Uid): Key => [scopeOf(uid), 'session'],
	shortTerm: (uid: Uid, conversation: string): Key => [scopeOf(uid), 'stm', conversation],
	/** From a run's id to its agent. An entry that points to nothing means nothing. */
	index: (run: string): Key => ['run', run],
	indexes: (): Key => ['run'],
}

/** The runs of a conversation that have not ended, in order; the first is the active one. Gone when there is none. */
export interface Lane {
	runs: string[]
}

export interface IndexEntry {
	agent: string
	uid: Uid
}
