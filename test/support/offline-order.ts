import type { RunOrder } from '../../core/protocol.ts'

/** The order of a run with the offline provider, without tools and without a history. */
export function offlineOrder(run_id: string, prompt: string): RunOrder {
	return {
		run_id,
		agent_id: 'a',
		models: [{ provider: 'offline', kind: 'offline', model: 'offline', timeout_ms: 1_000 }],
		system: null,
		history: [],
		prompt,
		tools: [],
		journal: [],
		limits: { steps: 50, tokens: 100_000, wall_time_s: 60 },
		remaining_ms: 60_000,
	}
}
