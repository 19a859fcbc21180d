/** The records of a dialogue. Those of a run are in the scope of its agent, so that one commit can write both. */
import { hash } from 'node:crypto'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Key } from '../../../core/store/ports.ts'
import type { ChatKind, ChatRef, IncomingFile, Markup } from '../adapter.ts'
import { scopeOf } from '../keys.ts'
import type { SplitPosition } from './split.ts'

/** The pending answer of a run to a chat. Stored in the same commit as the run, until the answer was sent. */
export interface Reply {
	run_id: string
	/** The agent's name. */
	agent: string
	agent_uid: string
	conversation: string
	channel_id: string
	chat: ChatRef & { kind: ChatKind }
	/** Id of the message that it answers; absent if no message started the run. */
	reply_to?: string
	/** Ids of earlier messages that it answers, too. */
	merged?: string[]
	/** A result or a message that nobody in the chat asked for: nothing shows before it is complete. */
	unasked?: true
	/** Id of what was added to the chat's conversation for a result of another conversation. */
	noted?: string
	/** Ids of the run's questions that were sent or dropped. */
	asked: string[]
	/** The last of them that was sent. */
	said: string | null
	/** When that was. Absent in records of version 0.1.0. */
	said_at?: string
	/** What is being sent. */
	saying: Saying | null
	/** A message that shows a preview of the answer; it becomes the first part of what is sent next. */
	preview: Preview | null
}

/** Nothing of it was sent yet. */
export function newReply(reply: Omit<Reply, 'asked' | 'said' | 'saying' | 'preview'>): Reply {
	return { ...reply, asked: [], said: null, saying: null, preview: null }
}

export interface Saying {
	/** `answer`, or a question's id. */
	what: string
	/** Up to here it was sent. */
	place: SplitPosition
	/** Ids of the messages that were sent. */
	ids: string[]
	/** The next part is about to be sent, or was sent with an unknown outcome. */
	attempt: Attempt | null
	/** Its text is stored separately, as it was when its first part was sent; offsets refer to that text. */
	kept: boolean
	/** Of an answer with files, once its text was sent. */
	files?: SayingFiles
}

export interface SayingFiles {
	/** How many of them are done: they were sent, or the text names them. */
	done: number
	/** The next one is about to be sent, or was sent with an unknown outcome. */
	upload: Upload | null
	/** Markdown that is sent in place of the next one, which the platform refused. */
	line?: string
}

export interface Upload {
	/** `Connection.mark`. */
	mark?: string
}

/** The format of a part, from which the same part can be made again. */
export interface Attempt {
	markup: Markup
	max_length: number
	/** The format's limit in bytes, if it has one. */
	max_bytes?: number
	/** `Connection.mark`. */
	mark?: string
}

export interface Preview extends Attempt {
	/** Null if it is unknown whether it was sent. */
	id: string | null
	nonce: string
	/** As it was first sent. */
	text: string
}

/**
 * A message that was accepted and has no run yet: it waits for its files, or for an earlier message of its chat that does.
 * The commit that starts its run deletes it.
 */
export interface PendingMessage {
	/** Ids sort by time. */
	id: string
	/** The agent's name. */
	agent: string
	agent_uid: string
	binding_id: string
	conversation: string
	channel_id: string
	chat: ChatRef & { kind: ChatKind }
	/** Ids of what contains the chat. */
	within: string[]
	message_id: string
	/** Without the lines for files that are missing. */
	prompt: string
	/** As `RunRecord.place` and `RunRecord.trigger`. */
	place: string
	trigger: string
	files: IncomingFile[]
	/** Number of files that were left out. */
	more_files: number
	/** It waits until no run works in its conversation, and then shares a run with those behind it. */
	merges?: true
	at: string
}

/** A message that was accepted. */
export interface SeenMessage {
	at: string
}

/** The chat in which a conversation takes place, or to which its answers go. */
export interface Talk extends Pick<Reply, 'channel_id' | 'chat'> {
	at: string
}

/** The conversation of a chat since its last `/new`. */
export interface Session {
	session: string
	/** Name of the first conversation. */
	first: string
	at: string
}

/** The newest message that an agent sent to a chat. */
export interface SentMessage {
	id: string
}

/** The newest accepted message of a chat, and the position of the channel's feed at that time. */
export interface ChatMark {
	chat_id: string
	last_id: string
	cursor: string | null
	/** Increases with every message that the channel accepts. */
	taken: number
	at: string
}

/** A chat that messages came from. */
export interface KnownChatRecord {
	chat_id: string
	kind: ChatKind
	/** As in the adapter's message: a binding of one of these applies too. */
	within: string[]
	/** Uids of agents that have accepted messages of it, the latest last. */
	agents: string[]
	/** The mark of messages that led to no run. */
	mark: ChatMark | null
	at: string
}

/** Kinds of records that an agent has of a channel. */
const KINDS = ['reply', 'pending', 'text', 'seen', 'chat', 'sent', 'session'] as const

function ofAgent(uid: string, kind: (typeof KINDS)[number] | 'talk', ...rest: string[]): Key {
	return [agentScope(uid), `channel-${kind}`, ...rest]
}

export const keys = {
	/** Everything that an agent has of a channel, besides talks. */
	ofChannel: (uid: string, channel: string): Key[] => KINDS.map((kind) => ofAgent(uid, kind, channel)),
	reply: (uid: string, channel: string, run: string): Key => ofAgent(uid, 'reply', channel, run),
	/** Pending replies of an agent; ids of runs sort by time. */
	replies: (uid: string): Key => ofAgent(uid, 'reply'),
	pending: (uid: string, channel: string, id: string): Key => ofAgent(uid, 'pending', channel, id),
	/** Pending messages of an agent. */
	allPending: (uid: string): Key => ofAgent(uid, 'pending'),
	/** The text of a reply that needs several messages. */
	text: (uid: string, channel: string, run: string): Key => ofAgent(uid, 'text', channel, run),
	seen: (uid: string, channel: string, chat: string, message: string): Key =>
		ofAgent(uid, 'seen', channel, part(chat), part(message)),
	allSeen: (uid: string): Key => ofAgent(uid, 'seen'),
	mark: (uid: string, channel: string, chat: string): Key => ofAgent(uid, 'chat', channel, part(chat)),
	/** The newest message that the agent is known to have sent there, a `SentMessage`. */
	sent: (uid: string, channel: string, chat: string): Key => ofAgent(uid, 'sent', channel, part(chat)),
	session: (uid: string, channel: string, first: string): Key => ofAgent(uid, 'session', channel, part(first)),
	sessions: (uid: string): Key => ofAgent(uid, 'session'),
	talk: (uid: string, conversation: string): Key => ofAgent(uid, 'talk', part(conversation)),
	talks: (uid: string): Key => ofAgent(uid, 'talk'),
	/** A message that led to no run. */
	noted: (channel: string, chat: string, message: string): Key => [
		...keys.allNoted(channel),
		part(chat),
		part(message),
	],
	allNoted: (channel: string): Key => [scopeOf(channel), 'dialogue-seen'],
	/** The position of the feed when an agent's records were deleted. */
	feed: (channel: string): Key => [scopeOf(channel), 'dialogue-feed'],
	chat: (channel: string, chat: string): Key => [...keys.chats(channel), part(chat)],
	chats: (channel: string): Key => [scopeOf(channel), 'dialogue-chat'],
}

/** A binding of a larger place has a conversation for each chat in it. Without a session: the first conversation there. */
export function conversationOf(
	bound: { binding_id: string; external_chat_id: string },
	chat: ChatRef,
	session: string | null = null,
): string {
	const parts = ['channel', bound.binding_id]
	if (chat.id !== bound.external_chat_id) parts.push(part(chat.id))
	if (chat.thread_id !== undefined) parts.push(`thread-${part(chat.thread_id)}`)
	if (session !== null) parts.push(session)
	return parts.join(':')
}

/** 25 characters, the same for every attempt to send this message. `of`: what the message is part of; `n` counts its parts. */
export function nonceOf(of: string, n: number): string {
	const digest = hash('sha256', `${of}\n${n}`)
	return BigInt(`0x${digest}`).toString(36).padStart(25, '0').slice(0, 25)
}

const PART_LIMIT = 128

/** An id of the platform as a part of a key. */
function part(id: string): string {
	const isPlain = id !== '' && id.length <= PART_LIMIT && /^[\x20-\x7e]+$/.test(id)
	return isPlain ? id : `sha256-${hash('sha256', id)}`
}
