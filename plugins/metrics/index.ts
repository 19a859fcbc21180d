import { definePlugin } from '../../core/plugin.ts'

/** What the gateway does, in numbers, for Prometheus. */
export default definePlugin({
	name: 'metrics',
	needs: ['auth'],
})
