/** Keys of records. The list of channels has one scope, and each channel has its own. */
import type { Key } from '../../core/store/ports.ts'

export function scopeOf(channel_id: string): string {
	return `channel:${channel_id}`
}

export const keys = {
	index: ['channels', 'index'] as Key,
	channel: (id: string): Key => [scopeOf(id), 'channel'],
	ledger: (id: string): Key => [scopeOf(id), 'ledger'],
	/** Not `chat`, which the dialogue uses for its records of chats. */
	chats: (id: string): Key => [scopeOf(id), 'bound'],
	chat: (id: string, chat_id: string): Key => [scopeOf(id), 'bound', chat_id],
	binding: (id: string, binding_id: string): Key => [scopeOf(id), 'binding', binding_id],
	codes: (id: string): Key => [scopeOf(id), 'codes'],
}
