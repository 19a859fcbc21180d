/** Settings of the plugin `runs`, for tests that call its functions with a context of their own. */
import type { RunSettings } from '../../plugins/runs/contract.ts'

/** The defaults for waiting and retention. */
export const runSettings: RunSettings = {
	limits: { steps: 50, tokens: 1_000, wall_time_s: 60, result_characters: 32_768 },
	max_waiting: 10,
	max_waiting_per_agent: 100,
	max_waiting_total: 1_000,
	question_ttl_days: 7,
	approval_ttl_s: 86_400,
	retention_days: 30,
	keep_requests: 0,
}
