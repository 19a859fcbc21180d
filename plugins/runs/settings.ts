import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, section } from '../../config/fields.ts'
import type { RunSettings } from './contract.ts'

export default defineSettings<RunSettings>({
	description: 'Limits of runs, and how long they are kept.',
	topic: 'Agents at work',
	schema: () =>
		allSettings<RunSettings>({
			retention_days: count(1, 3650, 30, 'Days that ended runs are kept.'),
			limits: section('Limits of one run, for agents that set none of their own.', {
				steps: count(1, 10_000, 50, 'Model calls of one run.'),
				tokens: count(1, 1_000_000_000, 500_000, 'Tokens of one run, prompts and answers together.'),
				wall_time_s: count(
					1,
					604_800,
					900,
					'Seconds that one run may be active. The time that it waits for an answer does not count.',
				),
				result_characters: count(
					1024,
					1_048_576,
					32_768,
					'Maximum characters of a tool result that a model gets. If a result is longer, it gets the beginning and the end, and can read the rest.',
				),
			}),
			keep_requests: count(
				0,
				365,
				0,
				'How many days each request to a model is kept, as it was sent but without secrets. 0: not kept.',
			),
			max_waiting: count(1, 10_000, 100, 'Runs that may wait in one conversation.'),
			max_waiting_per_agent: count(
				1,
				100_000,
				1000,
				'Runs of one agent that may wait; of webhook deliveries and heartbeats, three quarters. Sub-agents count, but are never refused.',
			),
			max_waiting_total: count(
				1,
				1_000_000,
				10_000,
				'Runs of all agents that may wait for a thread; of one caller, as many as are left, so at most half; of deliveries and heartbeats, three quarters.',
			),
			approval_ttl_s: count(
				1,
				31_536_000,
				86_400,
				'Seconds that a tool call waits for approval. After that it counts as refused, and the run continues.',
			),
			question_ttl_days: count(1, 365, 7, 'Days that a question waits for its answer.'),
		}),
})
