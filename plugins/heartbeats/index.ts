import { definePlugin } from '../../core/plugin.ts'
import type { HeartbeatSettings } from './contract.ts'
import { heartbeatsOf } from './heartbeats.ts'
import { keepTime } from './keeper.ts'
import { addPrimitives } from './primitives.ts'
import { routes } from './routes.ts'

/** Heartbeats: runs that start by the clock. */
export default definePlugin<HeartbeatSettings>({
	name: 'heartbeats',
	needs: ['auth', 'agents', 'runs'],
	// Two clocks would do each beat twice.
	exclusive: true,
	config: (joi) =>
		joi.object<HeartbeatSettings>({
			max_per_agent: joi.number().required(),
			missed_grace_s: joi.number().required(),
		}),
	start(ctx) {
		const heartbeats = heartbeatsOf(ctx)
		addPrimitives(ctx, heartbeats)
		keepTime(ctx)
		return heartbeats
	},
	http: (server, ctx) => routes(server, ctx),
})
