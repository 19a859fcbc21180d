import { definePlugin } from '../../core/plugin.ts'
import events from './events.ts'
import { agentsOf } from './agents.ts'
import type { Agents, AgentsSettings } from './contract.ts'
import { routes } from './routes.ts'

/** Agents: create, read, change, delete. */
export default definePlugin<AgentsSettings, Agents>({
	name: 'agents',
	needs: ['auth'],
	events,
	scopes: {
		'agents:read': 'List and get agents with their history, runs, questions, skills and webhooks',
		'agents:write': 'Create, change, reset and delete agents, and everything that belongs to them',
	},
	async start(ctx) {
		const agents = agentsOf(ctx)
		await agents.recover()
		return agents
	},
	http: routes,
})
