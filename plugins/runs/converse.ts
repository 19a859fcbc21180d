/** Sends a message in a conversation and follows it to its answer. */
import type { AgentRef } from '../../core/plugin.ts'
import type { Op } from '../../core/store/ports.ts'
import type { Exchange, NewMessage, RunListener, RunRecord, Runs } from './contract.ts'
import { isNotOpen, openFollower } from './follower.ts'
import type { Follower, FollowerDeps } from './follower.ts'

/** As `Runs.converse`. */
export async function converse(
	ctx: FollowerDeps,
	runs: Runs,
	agent: AgentRef,
	message: NewMessage,
	listener: RunListener = {},
): Promise<Exchange> {
	let follower: Follower | undefined
	/** Called before the run can emit events. */
	const listen = (run_id: string): Follower => {
		if (follower?.run_id === run_id) return follower
		follower?.close()
		return (follower = openFollower(ctx, runs, run_id, listener))
	}
	try {
		const { run, answered } = await send(runs, agent, message, listen)
		const { run_id, status } = run
		const exchange = listen(run_id)
		exchange.begin({ answered })
		if (answered === undefined && status === 'queued' && listener.until?.includes('blocked'))
			exchange.own(watchAhead(ctx, runs, run, () => exchange.finish({ status: 'blocked' })))
		// The caller left before it was known which run its message belongs to.
		if (listener.signal?.aborted && listener.stopsRun) await runs.stop(run_id)
		return exchange
	} catch (error) {
		follower?.close()
		throw error
	}
}

/** As `Runs.follow`. */
export async function follow(
	ctx: FollowerDeps,
	runs: Runs,
	run_id: string,
	listener: RunListener = {},
): Promise<Exchange> {
	const follower = openFollower(ctx, runs, run_id, listener)
	try {
		follower.begin({ record: await runs.get(run_id) })
		return follower
	} catch (error) {
		follower.close()
		throw error
	}
}

/** `answered`: id of the question to which the message was the answer. */
async function send(
	runs: Runs,
	agent: AgentRef,
	{ answerTo, also, ...start }: NewMessage,
	listen: (run_id: string) => unknown,
): Promise<{ run: RunRecord; answered?: string }> {
	const conversation = start.conversation ?? (await runs.session(agent))
	const active = answerTo && (await runs.active(agent, conversation))
	const asked = active ? await runs.asked(active) : null
	const answer = active && asked ? await answerTo(active, asked) : null
	if (active && asked && answer !== null) {
		const { question_id } = asked
		listen(active.run_id)
		try {
			await runs.answer(agent, question_id, answer, await also?.(active.run_id, false))
			return { run: active, answered: question_id }
		} catch (error) {
			// Another caller answered, or the run was stopped meanwhile: the message starts a run instead.
			if (!isNotOpen(error)) throw error
		}
	}
	const begun = async (run_id: string): Promise<Op[]> => {
		listen(run_id)
		return (await also?.(run_id, true)) ?? []
	}
	return { run: await runs.start(agent, { ...start, conversation, also: begun }) }
}

/**
 * Calls `blocked` when the run ahead of `run` in its conversation queue waits for an answer, to its own question or to a
 * sub-agent's. That answer may take days, or never arrive. Stops when the returned function is called.
 */
function watchAhead({ events, log }: FollowerDeps, runs: Runs, run: RunRecord, blocked: () => void): () => void {
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
