import { definePlugin } from '../../core/plugin.ts'
import events from './events.ts'
import { addPrimitives } from './primitives.ts'
import { profilesOf } from './profiles.ts'
import type { OwnProfiles } from './profiles.ts'
import { routes } from './routes.ts'

/** Profiles: what an agent knows about itself and its people, in every prompt. */
export default definePlugin<unknown, OwnProfiles>({
	name: 'profile',
	needs: ['auth', 'agents'],
	events,
	start(ctx) {
		const profiles = profilesOf(ctx)
		addPrimitives(ctx, profiles)
		return profiles
	},
	http: routes,
})
