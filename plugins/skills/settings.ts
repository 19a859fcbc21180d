import { defineSettings } from '../../config/declaration.ts'
import { count, flag } from '../../config/fields.ts'
import type { SkillSettings } from './contract.ts'

/** Memory that the process around a skill's isolate needs itself. */
const PROCESS_OWN_MIB = 64
const PROCESS_MIB = 256

export default defineSettings<SkillSettings>({
	description: 'What agents learn from Markdown files, and where the code in them runs.',
	topic: 'What agents can do',
	schema: (joi) =>
		joi.object<SkillSettings>({
			allow_private_urls: flag(false, 'Whether any caller may install a skill from a private address.'),
			processes: count(1, 32, 2, 'Processes in which the code of skills runs, one call at a time in each.'),
			max_waiting: count(1, 10_000, 100, 'Calls that may wait for a process.'),
			memory_mib: count(8, 1024, 64, 'Mebibytes that the code of one call may use.'),
			process_mib: count(128, 4096, PROCESS_MIB, 'Mebibytes that the process around it may use.'),
			cpu_s: count(1, 300, 5, 'Seconds that one call may compute.'),
			wall_time_s: count(1, 3600, 60, 'Seconds that one call may take, waiting for answers included.'),
			max_per_agent: count(1, 1000, 100, 'Skills of one agent, revisions in quarantine included.'),
		}),
	check({ memory_mib, process_mib }) {
		if (process_mib >= memory_mib + PROCESS_OWN_MIB) return []
		const message = `skills.process_mib (${process_mib}) must be at least ${PROCESS_OWN_MIB} above skills.memory_mib (${memory_mib})`
		return [{ path: process_mib === PROCESS_MIB ? 'memory_mib' : 'process_mib', message }]
	},
})
