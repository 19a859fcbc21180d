import { isFault } from '../../core/errors.ts'
import type { RunRecord, Runs } from '../runs/contract.ts'
import type { McpCall, McpContext } from './call.ts'
import { isEnded } from './views.ts'
import type { RunState } from './views.ts'
import { Watch } from './watch.ts'

/** Events tell what happens to the run; what happens to one below it is learned by looking. */
const LOOK_MS = 10_000
const LOOK_BELOW_MS = 1_000
/** Runs below one another, at most. */
const DEPTH = 8

/**
 * Waits for a run: until it has ended, asks something that nobody at the client answers, or `max_wait_s` are over; or until
 * nobody waits for the call any more. Answers with the run as it is then. Throws `not_found` where it was deleted meanwhile.
 */
export async function follow(ctx: McpContext, run_id: string, call: McpCall): Promise<RunState> {
	const runs = ctx.use('runs')
	const deadline = performance.now() + ctx.config.max_wait_s * 1000
	const left = (): number => Math.max(0, deadline - performance.now())
	using watch = new Watch(ctx.events, run_id, call)
	for (;;) {
		const state = await look(runs, run_id)
		const { run, asking } = state
		if (isEnded(run) || call.signal.aborted || left() === 0) return state
		if (asking) {
			if (!call.ask || (await ask(ctx, asking, call, watch, left)) === 'unanswered') return state
		} else await watch.next(Math.min(run.waits_for === undefined ? LOOK_MS : LOOK_BELOW_MS, left()))
	}
}

/** The run, and who below it asks. */
export async function look(runs: Runs, run_id: string): Promise<RunState> {
	const run = await runs.get(run_id)
	let asking: RunRecord | undefined = run
	for (let depth = 0; asking?.waits_for !== undefined && depth < DEPTH; depth++)
		asking = await runs.get(asking.waits_for).catch(() => undefined)
	return asking?.question && !isEnded(asking) ? { run, asking } : { run }
}

/** `moved`: there is something new to look at, such as the answer. */
async function ask(
	ctx: McpContext,
	{ run_id, agent, agent_uid, question }: RunRecord,
	call: McpCall,
	watch: Watch,
	left: () => number,
): Promise<'moved' | 'unanswered'> {
	if (!question || !call.ask) return 'unanswered'
	const { question_id } = question
	const runs = ctx.use('runs')
	const stop = new AbortController()
	let answer: string | null | undefined
	const asked = call.ask(question, left(), stop.signal).then((said) => (answer = said))
	try {
		// Somebody else may answer it meanwhile, or stop the run.
		while (answer === undefined) {
			await Promise.race([asked, watch.next(Math.min(LOOK_BELOW_MS, left()))])
			if (answer !== undefined) break
			if (call.signal.aborted || left() === 0) return 'moved'
			const { asking } = await look(runs, run_id)
			if (asking?.question?.question_id !== question_id) return 'moved'
		}
	} finally {
		if (answer === undefined) stop.abort() // the SDK would also take back what has been answered
	}
	if (answer === null) return 'unanswered'
	try {
		await runs.answer({ name: agent, uid: agent_uid }, question_id, answer)
	} catch (error) {
		if (!isFault(error, 'already_answered', 'conflict', 'not_found')) throw error
	}
	return 'moved'
}
