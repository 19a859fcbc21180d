import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count } from '../../config/fields.ts'
import type { AgentsSettings } from './contract.ts'

export default defineSettings<AgentsSettings>({
	description: 'Limit of the number of agents.',
	topic: 'Agents at work',
	schema: () =>
		allSettings<AgentsSettings>({
			max_agents: count(
				1,
				100_000,
				1000,
				'Maximum number of agents. Existing agents above it stay, but no more can be created.',
			),
		}),
})
