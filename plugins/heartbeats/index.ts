import { definePlugin } from '../../core/plugin.ts'
import events from './events.ts'
import type { HeartbeatSettings, Heartbeats } from './contract.ts'
import { heartbeatsOf } from './heartbeats.ts'
import { keepTime } from './keeper.ts'
import { addPrimitives } from './primitives.ts'
import { routes } from './routes.ts'

/** Heartbeats: runs that start on a schedule. */
export default definePlugin<HeartbeatSettings, Heartbeats>({
	name: 'heartbeats',
	needs: ['auth', 'agents', 'runs'],
	events,
	// Two instances would execute beats twice.
	exclusive: true,
	start(ctx) {
		const heartbeats = heartbeatsOf(ctx)
		addPrimitives(ctx, heartbeats)
		keepTime(ctx)
		return heartbeats
	},
	http: routes,
})
