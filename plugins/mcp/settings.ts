import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, hostsAndPorts, list } from '../../config/fields.ts'
import type { McpSettings } from './contract.ts'

const MAX_CALL_S = 600

export default defineSettings<McpSettings>({
	description: 'Servers that provide tools to agents over the Model Context Protocol.',
	topic: 'What agents can do',
	schema: (joi) => {
		const argument = joi.string().max(4096).description('The command or one of its arguments.')
		const command = joi
			.array()
			.items(argument)
			.min(1)
			.max(64)
			.description('A complete command line. Leading items such as NAME= are variables that callers may set.')
		return allSettings<McpSettings>({
			allowed_commands: list(
				command,
				256,
				'Command lines that callers without the scope * may start, such as [npx, -y, some-server]; leading NAME= items allow variables.',
			),
			allowed_hosts: hostsAndPorts('Hosts at private addresses that callers without the scope * may name.'),
			max_per_agent: count(1, 256, 16, 'Maximum number of servers per agent.'),
			call_timeout_s: count(1, 3600, 60, 'Longest time of a call without progress, in seconds.'),
			max_call_s: count(1, 86_400, MAX_CALL_S, 'Longest time of a call in total, in seconds.'),
			max_samplings_per_run: count(1, 1_000, 10, 'Requests to the model that servers may make in one run (sampling).'),
			max_sampling_tokens: count(1, 100_000, 4_096, 'Longest answer to such a request, in tokens.'),
		})
	},
	check({ call_timeout_s, max_call_s }) {
		if (call_timeout_s <= max_call_s) return []
		const message = `mcp.call_timeout_s (${call_timeout_s}) must be at most mcp.max_call_s (${max_call_s})`
		return [{ path: max_call_s === MAX_CALL_S ? 'call_timeout_s' : 'max_call_s', message }]
	},
})
