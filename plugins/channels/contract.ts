import type { AgentRef } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'

export interface ChannelSettings {
	/** `host` or `host:port`. Callers without the scope `*` may name only these in `config.api_root`. */
	allowed_api_roots: readonly string[]
	max_channels: number
	/** Per channel. */
	max_bindings: number
	/** How long the ids of messages are stored. */
	retention_days: number
	/** Upper limit of the delay between attempts to connect. */
	retry_max_s: number
}

/** Keys that every channel's `config` may have, in addition to those of its adapter. */
export interface CommonConfig {
	/** The agent to which codes bind chats. */
	agent_id?: string
	/** Another server than the platform's own. */
	api_root?: string
	/** In groups: answer messages that are addressed to the bot, or all messages. Default `mentions`. */
	answer?: 'mentions' | 'all'
	/** Ids of the users who may talk to the bot; all users if absent. */
	allowed_senders?: string[]
	/** Show which tools a run calls while people wait for its answer. Default true. */
	progress?: boolean
	/** What happens to messages that arrive during a run: one run for each, in order, or one run for all. Default `in_order`. */
	during_run?: 'in_order' | 'merged'
}

/** `disabled`: no running plugin provides this type of channel. `error`: a person must change something. */
export type ConnectionState = 'connecting' | 'connected' | 'reconnecting' | 'error' | 'disabled'

export interface Channel {
	id: string
	type: string
	status: 'active'
	created_at: string
}

export interface ChannelDetails extends Channel {
	connection: ConnectionState
	last_error: string | null
	bot_token_ref: string
	config: Record<string, unknown>
	/** Name of the bot on its platform, once known. */
	bot: string | null
	bindings: Binding[]
}

/** Who may answer questions and approvals in a chat: everyone there, or the person who paired it. */
export type WhoMayAnswer = 'anyone' | 'paired'

export interface Binding {
	binding_id: string
	/** The agent's name. */
	agent_id: string
	channel_id: string
	external_chat_id: string
	who_may_answer: WhoMayAnswer
	/** The platform's id of the person who requested the code, or whom a caller named; null if unknown. */
	paired_by: string | null
	created_at: string
}

/** The default is `paired` if it is known who paired the chat, otherwise `anyone`. */
export interface Answerers {
	who_may_answer?: WhoMayAnswer | undefined
	paired_by?: string | undefined
}

export interface NewChannel {
	type: string
	/** A secret's id or name. Required, but its absence is reported only if everything else is valid. */
	bot_token_ref: string | undefined
	config: Record<string, unknown>
}

export interface SaidInChat {
	message_id: string
	/** The chat's current conversation. */
	conversation: string
	channel_id: string
	chat_id: string
}

/** A chat that has a code and is not bound yet. */
export interface WaitingChat {
	channel_id: string
	external_chat_id: string
	/** The platform's id of the person who asked for the code; null for codes of version 0.1.0. */
	asked_by: string | null
	expires_at: string
}

export interface Channels {
	/** The type and the connection state of each channel. */
	connections(): Promise<{ type: string; connection: ConnectionState }[]>
	/** Durable when it settles; then it connects automatically. `caller`: its scopes determine which secrets and servers it may name. */
	create(channel: NewChannel, caller: Credentials): Promise<Channel>
	list(): Promise<Channel[]>
	/** Throws `not_found`. */
	get(id: string): Promise<ChannelDetails>
	/** Keys of `config` are merged, and a key set to null is removed; reconnects after a change. Throws `not_found`. */
	change(id: string, change: Partial<Omit<NewChannel, 'type'>>, caller: Credentials): Promise<ChannelDetails>
	/** Also deletes its bindings, codes and pending answers. Throws `not_found`. */
	remove(id: string): Promise<void>
	/**
	 * Sends a message to a chat as the agent, without a run. When it settles, the message is durable and part of the chat's
	 * current conversation; then it is sent once, even after a crash. `conversation`: any conversation of a chat that is bound to the agent.
	 * Throws `not_found`, `conflict` if the chat is no longer bound, `queue_full`, `idempotency_mismatch`.
	 */
	say(agent: AgentRef, conversation: string, content: string, idempotency_key?: string): Promise<SaidInChat>
	bindings(channel_id: string): Promise<Binding[]>
	/** Throws `not_found` (agent or channel), `already_exists` (the chat is bound). */
	bind(binding: { agent: AgentRef; channel_id: string; external_chat_id: string } & Answerers): Promise<Binding>
	/** The newest 200 chats, each with the latest code that was requested there. */
	waiting(): Promise<WaitingChat[]>
	/**
	 * Binds a chat by its code, which can be used once. Throws `pairing_invalid`, `rate_limited` after too many wrong codes, and
	 * `invalid_request` if the agent is ambiguous.
	 */
	pair(code: string, agent_id: string | undefined, caller: Credentials, who_may_answer?: WhoMayAnswer): Promise<Binding>
	/** Throws `not_found`, and `invalid_request` for `paired` if it is unknown who paired the chat. */
	changeBinding(channel_id: string, binding_id: string, change: Answerers): Promise<Binding>
	/** Throws `not_found`. */
	unbind(channel_id: string, binding_id: string): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Services {
		channels: Channels
	}
}

export type ChannelCode = 'channel_unavailable' | 'pairing_invalid'

declare module '../../core/errors.ts' {
	interface ErrorCodes extends Record<ChannelCode, true> {}
}

declare module '../../config/types.ts' {
	interface Config {
		channels: ChannelSettings
	}
}
