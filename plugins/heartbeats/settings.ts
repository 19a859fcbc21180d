import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count } from '../../config/fields.ts'
import type { HeartbeatSettings } from './contract.ts'

export default defineSettings<HeartbeatSettings>({
	description: 'Runs that start on a schedule.',
	topic: 'What agents can do',
	schema: () =>
		allSettings<HeartbeatSettings>({
			max_per_agent: count(1, 1000, 32, 'Heartbeats of one agent.'),
			missed_grace_s: count(
				0,
				604_800,
				3600,
				'Seconds for which a missed beat can still start its run, once; after that it is skipped.',
			),
		}),
})
