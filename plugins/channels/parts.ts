/** Types shared by the two halves of this plugin: the registry of channels, and the dialogue with their chats. */
import type { AgentRef } from '../../core/plugin.ts'
import type { ChannelAdapter, ChatRef, Connection, IncomingMessage, KnownChat } from './adapter.ts'
import type { Channels, CommonConfig } from './contract.ts'

/** A channel as the dialogue sees it. */
export interface LiveChannel extends Readonly<Pick<ChannelAdapter, 'type' | 'label' | 'can'>> {
	readonly id: string
	readonly config: CommonConfig
	/** When the rules about which messages are answered last changed, ISO 8601. They do not apply to earlier messages. */
	readonly heard_since?: string
	/** Undefined while it is not connected. */
	connection(): Connection | undefined
}

/** A chat that is bound to an existing agent. */
export interface BoundChat {
	binding_id: string
	agent: AgentRef
	external_chat_id: string
	/** Only this user may answer questions. Absent: everyone. */
	answered_by?: string
	created_at: string
}

/** The dialogue as the registry sees it. */
export interface Dialogue {
	/** See `Link.receive`. Calls of one channel are serial. */
	receive(channel: LiveChannel, message: IncomingMessage): Promise<void>
	/** See `Link.advance`. */
	advance(channel_id: string, cursor: string): Promise<void>
	/** See `Link.cursor` and `Link.chats`. */
	cursor(channel_id: string): Promise<string | null>
	chats(channel_id: string): Promise<KnownChat[]>
	/** The channel is connected or reconnected: pending messages can be sent. */
	connected(channel_id: string): void
	/** See `Channels.say`. */
	say: Channels['say']
	/** Sends a confirmation to a chat that was just bound. */
	paired(channel_id: string, chat: ChatRef, agent_id: string): Promise<void>
	/** Deletes the records and pending answers of a deleted channel. Idempotent. */
	forget(channel_id: string): Promise<void>
}
