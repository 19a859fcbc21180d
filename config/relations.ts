import type { Settings } from './schema.ts'

/** What the process around a skill's isolate takes for itself. */
const PROCESS_OWN_MIB = 64

/** Settings that are good by themselves and do not go together. Each is told at a setting that is not its default. */
export function checkRelations({ server, legacy, skills, mcp }: Settings): { path: string; message: string }[] {
	const problems: { path: string; message: string }[] = []
	if (server.port !== 0 && server.port === legacy.port) {
		const path = server.port === 3000 ? 'legacy.port' : 'server.port'
		problems.push({ path, message: 'server.port and legacy.port must differ' })
	}
	const least = skills.memory_mib + PROCESS_OWN_MIB
	if (skills.process_mib < least) {
		const path = skills.process_mib === 256 ? 'skills.memory_mib' : 'skills.process_mib'
		const message = `skills.process_mib (${skills.process_mib}) must be at least ${PROCESS_OWN_MIB} above skills.memory_mib (${skills.memory_mib})`
		problems.push({ path, message })
	}
	if (mcp.call_timeout_s > mcp.max_call_s) {
		const path = mcp.max_call_s === 600 ? 'mcp.call_timeout_s' : 'mcp.max_call_s'
		const message = `mcp.call_timeout_s (${mcp.call_timeout_s}) must be at most mcp.max_call_s (${mcp.max_call_s})`
		problems.push({ path, message })
	}
	return problems
}
