/** For tests that kill a gateway repeatedly: it fails a run after three restarts in a row in the same step. */
import type { EventEnvelope } from '../../core/store/ports.ts'
import { endedRun } from './ended-run.ts'
import { send } from './gateway.ts'

const RESTART_LIMIT = 3
const ofSteps = new Set(['model.response', 'primitive.result', 'primitive.failed'])

/** Waits until the runs that are executing now have ended. Two more kills then fail no run. */
export async function ongoingRunsEnd(url: string): Promise<void> {
	const { status, body } = await send(`${url}/v1/runs?status=started&limit=500`, 'GET')
	if (status !== 200) throw new Error(`the runs were not listed: ${status} ${JSON.stringify(body)}`)
	for (const { run_id } of body.runs) await endedRun(url, run_id)
}

/** Whether the gateway was right to end a run with `restart_loop`. `events`: all of the run's, oldest first. */
export function wereRestartsInOneStep(events: Pick<EventEnvelope, 'event_type' | 'payload'>[]): boolean {
	const sinceStep = events.slice(events.findLastIndex(({ event_type }) => ofSteps.has(event_type)) + 1)
	const restarts = sinceStep.filter(
		({ event_type, payload }) => event_type === 'run.resumed' && payload.reason === 'restart',
	)
	return restarts.length === RESTART_LIMIT
}
