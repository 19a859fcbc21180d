import { definePlugin } from '../../core/plugin.ts'
import type { ChannelAdapter } from '../channels/adapter.ts'
import { API_ROOT } from './config.ts'
import type { TelegramConfig } from './config.ts'

/** Telegram, by its Bot API: https://core.telegram.org/bots/api */
export const telegram: ChannelAdapter<TelegramConfig> = {
	type: 'chat_a',
	aliases: ['telegram'],
	label: 'Telegram',
	can: {
		formats: [
			{ markup: 'markdown', max_length: 32_768 },
			{ markup: 'html', max_length: 4096 },
			{ markup: 'plain', max_length: 4096 },
		],
		typing_ms: 5000,
		preview: { private: 'draft', group: 'edit' },
		// A group accepts about 20 messages and edits a minute.
		pace: { group_ms: 3000 },
		files: { max_bytes: 50_000_000 },
	},
	// The gateway validates the address.
	config: (joi) => joi.object<TelegramConfig>({ api_root: joi.string().default(API_ROOT) }),
	// grammY is loaded with the first connection.
	connect: async (link) => (await import('./connection.ts')).connect(link),
}

export default definePlugin({
	name: 'telegram',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', telegram),
})
