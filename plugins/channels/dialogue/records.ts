/** The records of the dialogue. Those about a run are in the scope of its agent, so that one commit can write both. */
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
	/** Id of the message to answer; absent if no message started the run. */
	reply_to?: string
	/** Ids of earlier messages that share the run. */
	merged?: string[]
	/** A result or a message that no message in the chat requested. Nothing is shown before it is complete. */
	unasked?: true
	/** For a result of another conversation: id of the message that was added to the chat's conversation. */
	noted?: string
	/** Ids of questions of the run that were sent or dropped. */
	asked: string[]
	/** Id of the last question that was sent. */
	said: string | null
	/** When it was sent. Absent in records of version 0.1.0. */
	said_at?: string
	/** While a text is sent. */
	saying: SendProgress | null
	/** The message that shows a preview. It becomes the first part of the next text. */
	preview: Preview | null
}

/** A reply of which nothing was sent yet. */
export function newReply(reply: Omit<Reply, 'asked' | 'said' | 'saying' | 'preview'>): Reply {
	return { ...reply, asked: [], said: null, saying: null, preview: null }
}

/** What was sent of a text and its files. */
export interface SendProgress {
	/** `answer`, or a question's id. */
	what: string
	/** The position up to which the text was sent. */
	place: SplitPosition
	/** Ids of the messages that were sent. */
	ids: string[]
	/** Set if the next part may have been sent. */
	attempt: Attempt | null
	/** The text, as it was when its first part was sent, is stored separately. Offsets refer to that text. */
	kept: boolean
	/** For an answer with files, once its text was sent. */
	files?: FileProgress
}

/** What was sent of the files. */
export interface FileProgress {
	/** Number of files that are done: sent, or mentioned in the text instead. */
	done: number
	/** Set if the next file may have been sent. */
	upload: Upload | null
	/** Markdown to send instead of the next file, which the platform refused. */
	line?: string
}

export interface Upload {
	/** `Connection.mark`. */
	mark?: string
}

/** The format of a part, which determines its text. */
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
	/** The text that was first sent. */
	text: string
}

/**
 * An accepted message without a run yet, because its files, or those of an earlier message of the chat, are still loading. The
 * commit that starts its run deletes the record.
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
	/** Ids of the containers of the chat. */
	within: string[]
	message_id: string
	/** Without the notes about missing files. */
	prompt: string
	/** As `RunRecord.place` and `RunRecord.trigger`. */
	place: string
	trigger: string
	files: IncomingFile[]
	/** Number of files that were omitted. */
	more_files: number
	/** Waits until its conversation is idle, and then shares a run with the messages behind it. */
	merges?: true
	at: string
}

/** Marks a message as accepted. */
export interface SeenMessage {
	at: string
}

/** The chat of a conversation: where it takes place, or where its answers go. */
export interface ConversationChat extends Pick<Reply, 'channel_id' | 'chat'> {
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
	/** The feed's `taken` at that time: the mark with the greatest one has the newest position. */
	taken: number
	at: string
}

/** A chat with accepted messages. */
export interface KnownChatRecord {
	chat_id: string
	kind: ChatKind
	/** Ids of the containers of the chat, whose bindings apply too. */
	within: string[]
	/** Uids of agents that have accepted messages of the chat, the latest last. */
	agents: string[]
	/** The mark of messages that started no run. */
	mark: ChatMark | null
	at: string
}

/** Kinds of records in an agent's scope about a channel. */
const KINDS = ['reply', 'pending', 'text', 'seen', 'chat', 'sent', 'session'] as const

type RecordKind = (typeof KINDS)[number] | 'talk'

function ofAgent(uid: string, kind: RecordKind, ...rest: string[]): Key {
	return [agentScope(uid), `channel-${kind}`, ...rest]
}

export const keys = {
	/** Everything of a kind in an agent's scope; ids of runs and of pending messages sort by time. */
	all: (uid: string, kind: RecordKind): Key => ofAgent(uid, kind),
	/** Everything in an agent's scope about a channel, except talks. */
	ofChannel: (uid: string, channel: string): Key[] => KINDS.map((kind) => ofAgent(uid, kind, channel)),
	reply: (uid: string, channel: string, run: string): Key => ofAgent(uid, 'reply', channel, run),
	pending: (uid: string, channel: string, id: string): Key => ofAgent(uid, 'pending', channel, id),
	/** The text of a reply that needs several messages. */
	text: (uid: string, channel: string, run: string): Key => ofAgent(uid, 'text', channel, run),
	seen: (uid: string, channel: string, chat: string, message: string): Key =>
		ofAgent(uid, 'seen', channel, keyPart(chat), keyPart(message)),
	mark: (uid: string, channel: string, chat: string): Key => ofAgent(uid, 'chat', channel, keyPart(chat)),
	/** The newest message that the agent is known to have sent to the chat, a `SentMessage`. */
	sent: (uid: string, channel: string, chat: string): Key => ofAgent(uid, 'sent', channel, keyPart(chat)),
	session: (uid: string, channel: string, first: string): Key => ofAgent(uid, 'session', channel, keyPart(first)),
	talk: (uid: string, conversation: string): Key => ofAgent(uid, 'talk', keyPart(conversation)),
	/** A message that started no run. */
	noted: (channel: string, chat: string, message: string): Key => [
		...keys.allNoted(channel),
		keyPart(chat),
		keyPart(message),
	],
	allNoted: (channel: string): Key => [scopeOf(channel), 'dialogue-seen'],
	/** The position of the feed when an agent's records were deleted. */
	feed: (channel: string): Key => [scopeOf(channel), 'dialogue-feed'],
	chat: (channel: string, chat: string): Key => [...keys.chats(channel), keyPart(chat)],
	chats: (channel: string): Key => [scopeOf(channel), 'dialogue-chat'],
}

/** The conversation of a chat. Under the binding of a container, each chat has its own. Without `session`: the first conversation. */
export function conversationOf(
	bound: { binding_id: string; external_chat_id: string },
	chat: ChatRef,
	session: string | null = null,
): string {
	const parts = ['channel', bound.binding_id]
	if (chat.id !== bound.external_chat_id) parts.push(keyPart(chat.id))
	if (chat.thread_id !== undefined) parts.push(`thread-${keyPart(chat.thread_id)}`)
	if (session !== null) parts.push(session)
	return parts.join(':')
}

/** 25 characters, the same for every attempt to send this message. `of`: identifies the text; `n`: the number of the part. */
export function nonceOf(of: string, n: number): string {
	const digest = hash('sha256', `${of}\n${n}`)
	return BigInt(`0x${digest}`).toString(36).padStart(25, '0').slice(0, 25)
}

const KEY_PART_LIMIT = 128

/** An id of the platform as part of a key. Long and unusual ids are hashed. */
function keyPart(id: string): string {
	const isPlain = id !== '' && id.length <= KEY_PART_LIMIT && /^[\x20-\x7e]+$/.test(id)
	return isPlain ? id : `sha256-${hash('sha256', id)}`
}
