/** Keys of the records of runs. All but the index are in the agent's own scope, so one commit can change them together. */
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key } from '../../core/store/ports.ts'

type Uid = AgentRef['uid']

export const keys = {
	run: (uid: Uid, run: string): Key => [agentScope(uid), 'run', run],
	/** The run's own inputs. */
	given: (uid: Uid, run: string): Key => [agentScope(uid), 'given', run],
	/** Every run of an agent; ids sort by time. */
	runs: (uid: Uid): Key => [agentScope(uid), 'run'],
	/** The runs of one conversation, in order. */
	turn: (uid: Uid, conversation: string, run: string): Key => [agentScope(uid), 'turn', conversation, run],
	turns: (uid: Uid, conversation: string): Key => [agentScope(uid), 'turn', conversation],
	allTurns: (uid: Uid): Key => [agentScope(uid), 'turn'],
	/** The conversation queue. Stored under its name in version 0.1.0. */
	queue: (uid: Uid, conversation: string): Key => [agentScope(uid), 'lane', conversation],
	queues: (uid: Uid): Key => [agentScope(uid), 'lane'],
	question: (uid: Uid, question: string): Key => [agentScope(uid), 'question', question],
	questions: (uid: Uid): Key => [agentScope(uid), 'question'],
	/** A permanently approved call, by the digest of its tool and arguments. */
	approval: (uid: Uid, digest: string): Key => [agentScope(uid), 'approval', digest],
	approvals: (uid: Uid): Key => [agentScope(uid), 'approval'],
	/** The tokens of a family of runs, by its top run. */
	family: (uid: Uid, top: string): Key => [agentScope(uid), 'family', top],
	idempotency: (uid: Uid, hash: string): Key => [agentScope(uid), 'idempotency', hash],
	idempotencies: (uid: Uid): Key => [agentScope(uid), 'idempotency'],
	session: (uid: Uid): Key => [agentScope(uid), 'session'],
	shortTerm: (uid: Uid, conversation: string): Key => [agentScope(uid), 'stm', conversation],
	/** Where the conversation is cut for models. */
	marks: (uid: Uid, conversation: string): Key => [agentScope(uid), 'context', conversation],
	allMarks: (uid: Uid): Key => [agentScope(uid), 'context'],
	/** The summary that replaces the oldest turns of a conversation. */
	summary: (uid: Uid, conversation: string): Key => [agentScope(uid), 'summary', conversation],
	summaries: (uid: Uid): Key => [agentScope(uid), 'summary'],
	allShortTerm: (uid: Uid): Key => [agentScope(uid), 'stm'],
	/** Conversations whose deletion has begun. */
	forgetting: (uid: Uid, conversation: string): Key => [agentScope(uid), 'forgetting', conversation],
	forgettings: (uid: Uid): Key => [agentScope(uid), 'forgetting'],
	/** A request that was sent to a model for a run, and its body. Ids sort by time. */
	request: (uid: Uid, run: string, id: string): Key => [agentScope(uid), 'request', run, id],
	requests: (uid: Uid, run?: string): Key => [agentScope(uid), 'request', ...(run === undefined ? [] : [run])],
	requestBody: (uid: Uid, run: string, id: string): Key => [agentScope(uid), 'request-body', run, id],
	requestBodies: (uid: Uid, run: string): Key => [agentScope(uid), 'request-body', run],
	/** Maps a run's id to its agent. An entry without a run is ignored. */
	index: (run: string): Key => ['run', run],
	indexes: (): Key => ['run'],
}

/** Identifies a conversation in maps in memory: its name alone is unique only for its agent. */
export function conversationKey(uid: Uid, conversation: string): string {
	return `${uid} ${conversation}`
}

/** The unfinished runs of a conversation, in order; the first is the active one. Deleted with the last. */
export interface ConversationQueue {
	runs: string[]
}

export interface IndexEntry {
	agent: string
	uid: Uid
}
