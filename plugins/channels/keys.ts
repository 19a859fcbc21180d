/** Where things are kept: the list of channels in a scope of its own, all that is one channel's in the channel's. */
import type { Key } from '../../core/store/ports.ts'

export const INDEX_SCOPE = 'channels'

export function scopeOf(channel_id: string): string {
	return `channel:${channel_id}`
}

export const keys = {
	index: [INDEX_SCOPE, 'index'] as Key,
	channel: (id: string): Key => [scopeOf(id), 'channel'],
	ledger: (id: string): Key => [scopeOf(id), 'ledger'],
	/** Not `chat`, where the dialogue keeps what it knows of chats. */
	chats: (id: string): Key => [scopeOf(id), 'bound'],
	chat: (id: string, chat_id: string): Key => [scopeOf(id), 'bound', chat_id],
	binding: (id: string, binding_id: string): Key => [scopeOf(id), 'binding', binding_id],
	codes: (id: string): Key => [scopeOf(id), 'codes'],
}
