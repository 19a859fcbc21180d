import { definePlugin } from '../../core/plugin.ts'
import { agentsOf } from './agents.ts'
import { routes } from './routes.ts'

/** Agents: create, read, change, delete. */
export default definePlugin({
	name: 'agents',
	needs: ['auth'],
	async start(ctx) {
		const agents = agentsOf(ctx)
		await agents.finishDeletions()
		return agents
	},
	http: (server, ctx) => routes(server, ctx),
})
