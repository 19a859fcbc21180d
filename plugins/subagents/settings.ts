import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count } from '../../config/fields.ts'
import type { SubagentSettings } from './contract.ts'

export default defineSettings<SubagentSettings>({
	description: 'Limits of sub-agents, the runs that other runs start.',
	topic: 'What agents can do',
	schema: () =>
		allSettings<SubagentSettings>({
			max_per_run: count(0, 64, 8, 'Sub-agents that one run may start.'),
			max_depth: count(0, 8, 2, 'Maximum nesting depth of sub-agents.'),
		}),
})
