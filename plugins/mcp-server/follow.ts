import { questionBelow } from '../../core/answer-stream.ts'
import { isFault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Asked, Runs } from '../runs/contract.ts'
import type { McpCall, McpContext } from './call.ts'
import { isEnded } from './views.ts'
import type { RunState } from './views.ts'
import { Watch } from './watch.ts'

/** Events tell when there is something new; should one get lost, it is seen so much later. */
const LOOK_MS = 10_000

/**
 * Waits for a run: until it has ended, asks something that nobody at the client answers, or `max_wait_s` are over; or until
 * nobody waits for the call any more. Answers with the run as it is then. Throws `not_found` where it was deleted meanwhile.
 */
export async function follow(ctx: McpContext, run_id: string, call: McpCall): Promise<RunState> {
	const runs = ctx.use('runs')
	const deadline = performance.now() + ctx.config.max_wait_s * 1000
	const left = (): number => Math.max(0, deadline - performance.now())
	using watch = new Watch(ctx, run_id, call)
	for (;;) {
		const state = await look(runs, run_id)
		const { run, asked } = state
		if (isEnded(run) || call.signal.aborted || left() === 0) return state
		if (asked) {
			const agent = { name: run.agent, uid: run.agent_uid }
			if (!call.ask || (await ask({ runs, agent, run_id, asked }, call, watch, left)) === 'unanswered') return state
		} else await watch.next(Math.min(LOOK_MS, left()))
	}
}

/** The run, and what it or a sub-agent of it asks. */
export async function look(runs: Runs, run_id: string): Promise<RunState> {
	const run = await runs.get(run_id)
	return { run, asked: await runs.asked(run) }
}

interface Asking {
	runs: Runs
	agent: AgentRef
	/** The run that waits for the answer. */
	run_id: string
	asked: Asked
}

/** `moved`: there is something new to look at, such as the answer. */
async function ask(
	{ runs, agent, run_id, asked }: Asking,
	call: McpCall,
	watch: Watch,
	left: () => number,
): Promise<'moved' | 'unanswered'> {
	if (!call.ask) return 'unanswered'
	const { question_id, options } = asked
	const question = asked.run_id === run_id ? asked.question : questionBelow(asked.question)
	const stop = new AbortController()
	let answer: string | null | undefined
	const said = call.ask({ question, ...(options && { options }) }, left(), stop.signal).then((text) => (answer = text))
	try {
		// Somebody else may answer it meanwhile, or stop the run.
		while (answer === undefined) {
			await Promise.race([said, watch.next(Math.min(LOOK_MS, left()))])
			if (answer !== undefined) break
			if (call.signal.aborted || left() === 0) return 'moved'
			if ((await look(runs, run_id)).asked?.question_id !== question_id) return 'moved'
		}
	} finally {
		if (answer === undefined) stop.abort() // the SDK would also take back what has been answered
	}
	if (answer === null) return 'unanswered'
	try {
		await runs.answer(agent, question_id, answer)
	} catch (error) {
		if (!isFault(error, 'already_answered', 'conflict', 'not_found')) throw error
	}
	return 'moved'
}
