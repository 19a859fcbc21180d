import { defineSettings } from '../../config/declaration.ts'
import { count } from '../../config/fields.ts'
import type { MemorySettings } from './contract.ts'

export default defineSettings<MemorySettings>({
	description: 'Long-term memory.',
	topic: 'What agents can do',
	schema: (joi) =>
		joi.object<MemorySettings>({
			max_per_agent: count(
				1,
				1_000_000,
				100_000,
				'Memories of one agent; at the limit none is stored until some are forgotten.',
			),
			index_mib: count(
				16,
				65_536,
				512,
				'Mebibytes that search indexes may hold in memory; those of idle agents go first.',
			),
		}),
})
