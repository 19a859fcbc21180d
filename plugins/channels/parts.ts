/** The seam between the two halves of this plugin: the registry, which has channels, chats and connections, and the dialogue, which talks. */
import type { AgentRef } from '../../core/plugin.ts'
import type { Abilities, ChatRef, Connection, IncomingMessage, KnownChat } from './adapter.ts'
import type { CommonConfig } from './contract.ts'

/** A channel as the dialogue sees it. */
export interface LiveChannel {
	readonly id: string
	readonly type: string
	/** What people call the platform. */
	readonly label: string
	readonly can: Abilities
	readonly config: CommonConfig
	/** When it was changed last who is answered, ISO 8601: what was said before is not answered by the new rules. */
	readonly heard_since?: string
	/** Undefined while it is not connected. */
	connection(): Connection | undefined
}

/** Which agent a chat belongs to, for as long as both are there. */
export interface BoundChat {
	binding_id: string
	agent: AgentRef
	external_chat_id: string
	created_at: string
}

/** What the dialogue needs of the registry. */
export interface Registry {
	/** Undefined for one that was deleted, or whose type no running plugin knows. */
	channel(id: string): LiveChannel | undefined
	/** The binding of the first of these ids that has one whose agent is still there. */
	bound(channel_id: string, chat_ids: readonly string[]): Promise<BoundChat | undefined>
	/** A fresh code for this chat. Of more than three open ones the oldest goes. */
	pairingCode(channel_id: string, chat_id: string): Promise<{ code: string; expires_at: string }>
	/** Called when a channel is connected or reconnected: pending messages can be sent. */
	onConnected(heard: (channel: LiveChannel) => void): void
}

/** What the registry needs of the dialogue. */
export interface Dialogue {
	/** As `Link.receive` says; calls of one channel come one after another. */
	receive(channel: LiveChannel, message: IncomingMessage): Promise<void>
	/** As `Link.advance` says. */
	advance(channel_id: string, cursor: string): Promise<void>
	/** As `Link.cursor` and `Link.chats` say. */
	cursor(channel_id: string): Promise<string | null>
	chats(channel_id: string): Promise<KnownChat[]>
	/** A chat was bound just now: sends it a confirmation. */
	paired(channel: LiveChannel, chat: ChatRef, agent_id: string): void
	/** Records of a channel that was deleted, and answers that waited for it. May be repeated. */
	forget(channel_id: string): Promise<void>
}
