/** Starts a failed or stopped run again, as a new run of its conversation. */
import { Fault } from '../../core/errors.ts'
import { defined } from '../../core/util/defined.ts'
import { retryableTriggers } from '../shared/retryable-triggers.ts'
import type { RunRecord, Runs } from './contract.ts'

/** Earlier retries that one request follows: each takes time on the main thread. */
const LIMIT = 20

/** As `Runs.retry`. */
export async function retryRun(runs: Pick<Runs, 'get' | 'start'>, run_id: string): Promise<RunRecord> {
	let run = await runs.get(run_id)
	checkRetryable(run)
	for (let n = 0; n < LIMIT; n++) {
		run = await startAgain(runs, run)
		// An earlier retry that has failed, too.
		if (!hasFailed(run)) return run
	}
	throw new Fault(
		'conflict',
		`run ${run_id} was started again ${LIMIT} times within 24 hours, and each run has failed or was stopped; start the last of them again, which is run ${run.run_id}`,
	)
}

/** The new run, or that of an earlier retry. */
function startAgain(runs: Pick<Runs, 'start'>, run: RunRecord): Promise<RunRecord> {
	const { run_id, agent: name, agent_uid: uid, prompt, trigger, conversation, destination } = run
	const { attachments, persona, tools, limits } = run
	return runs.start(
		{ name, uid },
		{
			prompt,
			trigger,
			conversation,
			destination,
			...defined({ attachments, persona, tools, limits }),
			origin: { event_type: 'run.retried', payload: { retried: run_id } },
			idempotency_key: `retry:${run_id}`,
		},
	)
}

function checkRetryable(run: RunRecord): void {
	const { run_id, status, trigger } = run
	if (!hasFailed(run))
		throw new Fault('conflict', `run ${run_id} is ${status}; only a failed or stopped run can be started again`)
	if (!retryableTriggers.includes(trigger) || run.parent || run.given || run.said)
		throw new Fault(
			'conflict',
			`run ${run_id} answers a message or request (${trigger}) and cannot be started again here; send that again`,
		)
}

function hasFailed({ status }: Pick<RunRecord, 'status'>): boolean {
	return status === 'failed' || status === 'stopped'
}
