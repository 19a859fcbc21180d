import type { MetricSource } from '../metrics/contract.ts'
import type { Runs } from './contract.ts'

/** The runs that have not ended. */
export function runMetrics(runs: Pick<Runs, 'census'>): MetricSource {
	return {
		metrics: {
			svc_runs_active: { help: 'Runs that are active, or about to be.', type: 'gauge' },
			svc_runs_waiting: { help: 'Runs that wait for an earlier run of their conversation.', type: 'gauge' },
			svc_runs_paused: { help: 'Runs that wait for an answer, or for the end of a sub-agent.', type: 'gauge' },
			svc_questions_open: { help: 'Questions that wait for an answer.', type: 'gauge' },
		},
		async read() {
			const { active, waiting, paused, questions } = await runs.census()
			return {
				svc_runs_active: active,
				svc_runs_waiting: waiting,
				svc_runs_paused: paused,
				svc_questions_open: questions,
			}
		},
	}
}
