/** A run that waits in its conversation queue behind one that may ask a question. */
import type { Context } from '../../core/plugin.ts'
import type { RunRecord, Runs } from './contract.ts'

/**
 * Calls `blocked` when the run ahead of `run` waits for an answer to its own question or a sub-agent's. That answer may
 * come days later or never. Stops when the returned function is called.
 */
export function watchAhead(
	{ events, log }: Pick<Context, 'events' | 'log'>,
	runs: Pick<Runs, 'active' | 'asked'>,
	run: RunRecord,
	blocked: () => void,
): () => void {
	const agent = { name: run.agent, uid: run.agent_uid }
	const check = async (): Promise<void> => {
		const ahead = await runs.active(agent, run.conversation)
		if (ahead && ahead.run_id !== run.run_id && (await runs.asked(ahead))) blocked()
	}
	const watch = (): void =>
		void check().catch((error: unknown) =>
			log.error({ err: error, run_id: run.run_id }, 'the run ahead of a queued run could not be checked'),
		)
	const leave = events.subscribe({ agent_id: run.agent, types: ['run.paused'] }, watch)
	watch()
	return leave
}
