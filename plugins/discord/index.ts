import { definePlugin } from '../../core/plugin.ts'
import type { ChannelAdapter } from '../channels/adapter.ts'
import { API_ROOT } from './config.ts'
import type { DiscordConfig } from './config.ts'

export const discord: ChannelAdapter<DiscordConfig> = {
	type: 'chat_b',
	aliases: ['discord'],
	label: 'Discord',
	can: {
		formats: [
			{ markup: 'markdown', max_length: 2000 },
			{ markup: 'plain', max_length: 2000 },
		],
		typing_ms: 10_000,
		preview: { private: 'edit', group: 'edit' },
		// The limit of a server without boosts.
		files: { max_bytes: 10 * 1024 * 1024 },
	},
	config: (joi) =>
		joi
			.object<DiscordConfig>({
				api_root: joi
					.string()
					.uri({ scheme: ['http', 'https'] })
					.max(2000)
					.default(API_ROOT),
			})
			.unknown(),
	// discord.js is large: a gateway without such a channel does not load it.
	connect: async (link) => (await import('./connection.ts')).connect(link),
}

/** Discord, the channel type `chat_b`. */
export default definePlugin({
	name: 'discord',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', discord as ChannelAdapter),
})
