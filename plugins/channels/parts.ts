/**
 * What both halves of this plugin know: the registry, which has channels, bindings and connections, and the dialogue, which
 * receives and sends messages.
 */
import type { AgentRef } from '../../core/plugin.ts'
import type { Abilities, ChatRef, Connection, IncomingMessage, KnownChat } from './adapter.ts'
import type { Channels, CommonConfig } from './contract.ts'

/** A channel as the dialogue sees it. */
export interface LiveChannel {
	readonly id: string
	readonly type: string
	/** What people call the platform. */
	readonly label: string
	readonly can: Abilities
	readonly config: CommonConfig
	/** When the rules of who is answered last changed, ISO 8601: earlier messages are not answered by the new rules. */
	readonly heard_since?: string
	/** Undefined while it is not connected. */
	connection(): Connection | undefined
}

/** The agent of a chat, as long as both exist. */
export interface BoundChat {
	binding_id: string
	agent: AgentRef
	external_chat_id: string
	/** Only this user may answer questions. Absent: everyone. */
	answered_by?: string
	created_at: string
}

/** What the registry needs of the dialogue. */
export interface Dialogue {
	/** As for `Link.receive`; calls of one channel come one after another. */
	receive(channel: LiveChannel, message: IncomingMessage): Promise<void>
	/** As for `Link.advance`. */
	advance(channel_id: string, cursor: string): Promise<void>
	/** As for `Link.cursor` and `Link.chats`. */
	cursor(channel_id: string): Promise<string | null>
	chats(channel_id: string): Promise<KnownChat[]>
	/** The channel is connected or reconnected: pending messages can be sent. */
	connected(channel_id: string): void
	/** As `Channels.say`. */
	say: Channels['say']
	/** Sends a confirmation to a chat that was just bound. */
	paired(channel_id: string, chat: ChatRef, agent_id: string): Promise<void>
	/** Deletes the records of a deleted channel, and answers that waited for it. May be repeated. */
	forget(channel_id: string): Promise<void>
}
