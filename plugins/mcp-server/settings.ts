import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, stallTimeout } from '../../config/fields.ts'
import type { McpServerSettings } from './contract.ts'

export default defineSettings<McpServerSettings>({
	description: 'Agents as tools of other programs, over the Model Context Protocol. Off by default.',
	onByDefault: false,
	answersAt: /^\/mcp$/,
	topic: 'Addresses and access',
	schema: () =>
		allSettings<McpServerSettings>({
			max_sessions: count(2, 10_000, 200, 'Maximum number of open sessions.'),
			idle_timeout_s: count(1, 86_400, 1_800, 'Seconds after which an idle session ends.'),
			max_wait_s: count(1, 86_400, 600, 'Seconds for which a call waits for its run.'),
			stall_timeout_s: stallTimeout(),
		}),
})
