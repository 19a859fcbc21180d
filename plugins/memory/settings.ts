import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, section } from '../../config/fields.ts'
import type { MemorySettings } from './contract.ts'

export default defineSettings<MemorySettings>({
	description: 'Long-term memory.',
	topic: 'What agents can do',
	schema: (joi) =>
		allSettings<MemorySettings>({
			max_per_agent: count(
				1,
				1_000_000,
				100_000,
				'Memories of one agent. At the limit no more are stored until some are deleted.',
			),
			index_mib: count(
				16,
				65_536,
				512,
				'Mebibytes of memory for search indexes; those of idle agents are removed first.',
			),
			embedder: joi
				.valid('provider', 'local', 'hashing')
				.default('provider')
				.description(
					"What search by meaning uses: the provider's embedding_model, the local encoder of `svc memory encoder`, or hashing of words. Default provider.",
				),
			recall: section('Memories that a model gets with a prompt, without asking for them.', {
				limit: count(0, 20, 5, 'Maximum number of memories; 0 for none.'),
				threshold: joi
					.number()
					.min(0)
					.max(1)
					.default(0.35)
					.description('Minimum similarity of a memory and the prompt, 0 to 1. Default 0.35.'),
			}),
		}),
})
