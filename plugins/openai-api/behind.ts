/** A request that waits for its turn in its conversation, behind one that may come to ask something. */
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { RunRecord } from '../runs/contract.ts'

/**
 * Calls `stuck` where the run ahead of `run` waits for an answer, to a question of its own or of a sub-agent: that may
 * come days later, or never, and a client cannot wait for it. Until the returned function is called.
 */
export function watchAhead(
	{ events, use, log }: Pick<Context, 'events' | 'use' | 'log'>,
	run: RunRecord,
	stuck: (why: Fault) => void,
): () => void {
	const agent = { name: run.agent, uid: run.agent_uid }
	const look = async (): Promise<void> => {
		const ahead = await use('runs').active(agent, run.conversation)
		if (!ahead || ahead.run_id === run.run_id || !(await use('runs').asked(ahead))) return
		const message = 'the agent has asked a question in this conversation meanwhile; answer it, then send this again'
		stuck(new Fault('conflict', message))
	}
	const watch = (): void =>
		void look().catch((error: unknown) =>
			log.error({ err: error, run_id: run.run_id }, 'a request could not look at the run ahead of it'),
		)
	const leave = events.subscribe({ agent_id: run.agent, types: ['run.paused'] }, watch)
	watch()
	return leave
}
