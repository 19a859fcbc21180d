/** The interfaces between the two halves of this plugin: the registry, which has channels, bindings and connections, and the dialogue, which receives and sends messages. */
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

/** What the dialogue needs of the registry. */
export interface Registry {
	/** Undefined for a channel that was deleted, or whose type no running plugin knows. */
	channel(id: string): LiveChannel | undefined
	/** The binding of the first of these ids that is bound to an agent that still exists. */
	bound(channel_id: string, chat_ids: readonly string[]): Promise<BoundChat | undefined>
	/** A new code for this chat, for which the user `by` asked. If there are more than three open codes, the oldest is dropped. */
	pairingCode(channel_id: string, chat_id: string, by: string): Promise<{ code: string; expires_at: string }>
	/** The chat of a binding; undefined if there is no such binding. */
	chatOf(binding_id: string): Promise<{ channel_id: string; chat_id: string } | undefined>
	/** The id of a channel that is named by its id, or by its type or an alias of it if only one channel has it. */
	named(name: string): Promise<string | undefined>
	/** Called when a channel is connected or reconnected: pending messages can be sent. */
	onConnected(listener: (channel: LiveChannel) => void): void
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
	/** As `Channels.say`. */
	say: Channels['say']
	/** Sends a confirmation to a chat that was just bound. */
	paired(channel: LiveChannel, chat: ChatRef, agent_id: string): void
	/** Deletes the records of a deleted channel, and answers that waited for it. May be repeated. */
	forget(channel_id: string): Promise<void>
}
