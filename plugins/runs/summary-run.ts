/** Makes a model write a summary: in a run without tools, in a separate conversation. */
import { hash } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { RunRecord, Runs } from './contract.ts'
import { isEnded } from './run-state.ts'
import { persona } from './summary-text.ts'

/** Attempts of one model call that the time limit allows for. */
const ATTEMPTS = 5
const TOKENS = 10_000_000

/** The conversation of the runs that summarize another one; deleted with it. */
export function conversationOfSummaries(conversation: string): string {
	return `summary:${conversation}`
}

/**
 * The run has its own limits in place of the agent's. The same prompt finds the run that was started for it before, so a restart
 * of the gateway costs no second run. Throws the error of a run that failed.
 */
export async function askForSummary(
	ctx: Pick<Context, 'redactor' | 'signal'>,
	runs: Pick<Runs, 'start' | 'follow' | 'get'>,
	agent: AgentRecord,
	conversation: string,
	{ prompt, models }: { prompt: string; models: readonly ModelOrder[] },
): Promise<RunRecord> {
	const text = ctx.redactor.of([{ uid: agent.uid }]).text(prompt, 'record')
	const wall_time_s = models.reduce((sum, { timeout_ms }) => sum + (timeout_ms / 1000) * ATTEMPTS, 60)
	const start = (key: string): Promise<RunRecord> =>
		runs.start(agent, {
			prompt: text,
			persona,
			conversation: conversationOfSummaries(conversation),
			trigger: 'summary',
			tools: 'none',
			// Without the prompts and answers of earlier summaries.
			given: { history: [] },
			limits: { steps: 10, tokens: TOKENS, wall_time_s },
			idempotency_key: key,
		})
	const key = `summary:${conversation}:${hash('sha256', text)}`
	const known = await start(key)
	const isOld = isEnded(known.status) && known.status !== 'completed'
	const { run_id } = isOld ? await start(`${key}:${known.run_id}`) : known
	const { result } = await runs.follow(run_id, { signal: ctx.signal })
	await result
	const run = await runs.get(run_id)
	if (run.status === 'completed') return run
	const { code = 'stopped', message = `its run ${run_id} was ${run.status}` } = run.error ?? {}
	throw new Fault(code as 'model_unavailable', message)
}
