import { definePlugin } from '../../core/plugin.ts'
import { telegram } from './telegram.ts'

export default definePlugin({
	name: 'telegram',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', telegram),
})
