/** A plugin for the measured gateway: emits events as fast as they become durable. */
import type { Plugin } from '../../core/plugin.ts'

export interface Burst {
	events: number
	/** Concurrent emitters, each of which emits one event after another. */
	lanes: number
	text: string
}

export default {
	name: 'tick',
	http(server, ctx) {
		server.route<{ Payload: Burst }>({
			method: 'POST',
			path: '/v1/tick',
			handler: async ({ payload: { events, lanes, text } }) => {
				let left = events
				const lane = async (): Promise<void> => {
					while (left-- > 0) await ctx.emit({ event_type: 'bench.tick', payload: { text } })
				}
				await Promise.all(Array.from({ length: lanes }, lane))
				return { events }
			},
		})
	},
} satisfies Plugin
