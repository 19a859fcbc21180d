import { definePlugin } from '../../core/plugin.ts'
import type { ChannelAdapter } from '../channels/adapter.ts'
import { discord } from './discord.ts'

/** Discord, as the kind of channel `chat_b`. */
export default definePlugin({
	name: 'discord',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', discord as ChannelAdapter),
})
