import type { AgentRef } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'

export interface ChannelSettings {
	/** `host` or `host:port`; those that callers without the scope `*` may name in `config.api_root`. */
	allowed_api_roots: readonly string[]
	max_channels: number
	/** Of one channel. */
	max_bindings: number
	/** For how long the ids of messages are kept. */
	retention_days: number
	/** What the delays between attempts to connect grow to. */
	retry_max_s: number
}

/** Keys that every channel's `config` may have, beside those of its adapter. */
export interface CommonConfig {
	/** The agent for pairing by code. */
	agent_id?: string
	/** Another server than the platform's own. */
	api_root?: string
	/** In groups: answer what is addressed to the bot, or everything. Default `mentions`. */
	answer?: 'mentions' | 'all'
	/** Ids of those who may talk to the bot; everybody where absent. */
	allowed_senders?: string[]
}

/** `disabled`: no plugin that runs knows this type of channel. `error`: only a change by a person helps. */
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
	/** Who the bot is on its platform, once that is known. */
	bot: string | null
	bindings: Binding[]
}

export interface Binding {
	binding_id: string
	/** The agent's name. */
	agent_id: string
	channel_id: string
	external_chat_id: string
	created_at: string
}

export interface NewChannel {
	type: string
	/** A secret's id or name. */
	bot_token_ref: string
	config: Record<string, unknown>
}

export interface Channels {
	/** Of each channel, its type and how its connection stands. */
	connections(): Promise<{ type: string; connection: ConnectionState }[]>
	/** Durable when it settles; connects on its own. `caller`: what they may name depends on who they are. */
	create(channel: NewChannel, caller: Credentials): Promise<Channel>
	list(): Promise<Channel[]>
	/** Throws `not_found`. */
	get(id: string): Promise<ChannelDetails>
	/** Keys of `config` are merged, one set to null is taken out; connects anew where something changed. Throws `not_found`. */
	change(id: string, change: Partial<Omit<NewChannel, 'type'>>, caller: Credentials): Promise<ChannelDetails>
	/** Bindings, codes and answers that wait go with it. Throws `not_found`. */
	remove(id: string): Promise<void>
	bindings(channel_id: string): Promise<Binding[]>
	/** Throws `not_found` (agent or channel), `already_exists` (the chat has one). */
	bind(binding: { agent: AgentRef; channel_id: string; external_chat_id: string }): Promise<Binding>
	/**
	 * By the code that a chat was given, which is used up. Throws `pairing_invalid`, `rate_limited` after too many wrong ones,
	 * and `invalid_request` where it is not clear which agent is meant.
	 */
	pair(code: string, agent_id: string | undefined, caller: Credentials): Promise<Binding>
	/** Throws `not_found`. */
	unbind(channel_id: string, binding_id: string): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Services {
		channels: Channels
	}
}
