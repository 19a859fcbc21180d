import { reaches } from '../shared/agent-limit.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import type { Agents } from '../agents/contract.ts'
import type { RunRecord, Runs } from './contract.ts'
import { unknownRun } from './records.ts'

/** As `Runs.visibleTo`, for a caller whose token is limited to some agents: runs of other agents do not exist for it. */
export function visibleRuns(runs: Runs, agents: Agents, caller: AgentLimit): Runs {
	const find = async (run_id: string): Promise<RunRecord | undefined> => {
		const run = await runs.find(run_id)
		return run && reaches(caller, run.agent) ? run : undefined
	}
	const get = async (run_id: string): Promise<RunRecord> => {
		const run = await find(run_id)
		if (run) return run
		throw unknownRun(run_id)
	}
	return {
		...runs,
		find,
		get,
		cancel: async (run_id) => runs.cancel((await get(run_id)).run_id),
		retry: async (run_id) => runs.retry((await get(run_id)).run_id),
		stop: async (run_id) => (await find(run_id)) !== undefined && runs.stop(run_id),
		follow: async (run_id, listener) => runs.follow((await get(run_id)).run_id, listener),
		async listAll(options) {
			const of_uids = new Set<string>()
			for await (const { uid } of agents.visibleTo(caller).list()) of_uids.add(uid)
			return runs.listAll({ ...options, of_uids })
		},
	}
}
