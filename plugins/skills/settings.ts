import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, flag } from '../../config/fields.ts'
import type { SkillSettings } from './contract.ts'

/** Memory that the process itself needs, without the skill's isolate. */
const PROCESS_OWN_MIB = 64
const PROCESS_MIB = 256

export default defineSettings<SkillSettings>({
	description: 'Skills of agents, and the processes that run their code.',
	topic: 'What agents can do',
	schema: () =>
		allSettings<SkillSettings>({
			allow_private_urls: flag(false, 'Whether any caller may install a skill from a private address.'),
			processes: count(1, 32, 2, 'Processes that run the code of skills, each one call at a time.'),
			waiting_processes: count(
				0,
				64,
				6,
				'More processes, for programs that only wait and for agents that have none while another agent uses all; one agent gets at most half of them.',
			),
			max_waiting: count(
				1,
				10_000,
				100,
				'Limit of calls of one agent that wait for a process; all agents together have a quarter more. Further calls fail with `sandbox_busy`.',
			),
			memory_mib: count(8, 1024, 64, 'Memory limit of the code of one call, in MiB.'),
			process_mib: count(128, 4096, PROCESS_MIB, 'Memory limit of the process of a call, in MiB.'),
			cpu_s: count(1, 300, 5, 'CPU time limit of one call, in seconds.'),
			wall_time_s: count(1, 3600, 60, 'Time limit of one call in seconds, waiting for answers included.'),
			max_per_agent: count(1, 1000, 100, 'Skills of one agent, revisions in quarantine included.'),
			max_mib_per_agent: count(8, 8192, 64, 'Size limit of all skills of one agent together, in MiB.'),
		}),
	check({ memory_mib, process_mib }) {
		if (process_mib >= memory_mib + PROCESS_OWN_MIB) return []
		const message = `skills.process_mib (${process_mib}) must be at least ${PROCESS_OWN_MIB} above skills.memory_mib (${memory_mib})`
		return [{ path: process_mib === PROCESS_MIB ? 'memory_mib' : 'process_mib', message }]
	},
})
