/** One request on its way to its answer: an ordinary run, which ends with the request. */
import { AnswerStream } from '../../core/answer-stream.ts'
import type { AnswerEnd } from '../../core/answer-stream.ts'
import { Fault, fromWire, isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ToolCallRequest, Usage } from '../../core/protocol.ts'
import type { EventEnvelope, Op } from '../../core/store/ports.ts'
import type { RunRecord, Runs, StartRequest } from '../runs/contract.ts'
import { watchAhead } from './behind.ts'
import { callId } from './ids.ts'

export interface Asked {
	agent: AgentRef
	start: Omit<StartRequest, 'trigger' | 'also' | 'conversation'> & { conversation: string }
	/** A question stays open and the next request of the conversation answers it; otherwise the run is stopped there. */
	stays: boolean
	/** Writes in the agent's scope that become durable together with the run, or with the answer to its question. */
	also?: (run_id: string) => Promise<Op[]>
}

export interface Answer {
	text: string
	/** Calls that the client makes, under ids of ours. */
	tool_calls: ToolCallRequest[]
	finish_reason: 'stop' | 'length' | 'tool_calls' | 'content_filter'
	/** Of the model calls of this request. */
	usage: Usage
}

export interface Exchange {
	run_id: string
	/** Rejects with a Fault: why the run failed, or the reason of `signal`. The run has ended then. */
	answer: Promise<Answer>
}

type Place = Pick<Context, 'events' | 'use' | 'log'>

/** `contradicts`: it goes on in other words than those that were told already, which nobody can take back. */
type End = AnswerEnd | { status: 'contradicts' }

/** By which runs of this surface are known. */
const TRIGGER = 'openai'

/**
 * Starts a run, or answers the question that the conversation waits for. Settles once that is durable. `piece` may be
 * called before, and never after the answer has settled. Where `signal` aborts, the run is stopped.
 *
 * Throws `not_found`, `queue_full`, or `conflict` where the conversation waits for an answer and is given results of tools.
 * Its answer is `conflict`, too, where another request of the conversation comes to ask something before its turn has come.
 */
export async function begin(
	ctx: Place,
	asked: Asked,
	signal: AbortSignal,
	piece?: (text: string) => void,
): Promise<Exchange> {
	const runs = ctx.use('runs')
	const told = new AnswerStream(piece)
	const answer = Promise.withResolvers<Answer>()
	answer.promise.catch(() => {}) // who has left does not look at it
	let run_id: string | undefined
	/** What happens before it is certain that this run is the one; null from then on. */
	let held: EventEnvelope[] | null = []
	let isOver = false
	let unsubscribe = (): void => {}
	let unwatch = (): void => {}
	let unwatchBelow = (): void => {}

	const listen = (run: string): void => {
		if (run === run_id || isOver) return
		unsubscribe()
		run_id = run
		held = []
		unsubscribe = ctx.events.subscribe({ run_id: run }, ({ event }) => {
			if (held) held.push(event)
			else hear(run, event)
		})
	}
	const hear = (run: string, event: EventEnvelope): void => {
		if (isOver) return
		heed(run, told.hear(event))
	}
	const heed = (run: string, end: AnswerEnd | undefined): void => {
		if (!told.isWhole) finish(run, { status: 'contradicts' })
		else if (end) finish(run, end)
	}
	const leave = (): boolean => {
		const wasOver = isOver
		isOver = true
		unsubscribe()
		unwatch()
		unwatchBelow()
		signal.removeEventListener('abort', abort)
		return wasOver
	}
	const finish = (run: string, end: End): void => {
		if (!leave()) conclude(ctx, asked, run, told, end).then(answer.resolve, answer.reject)
	}
	const giveUp = (why: unknown): void => {
		if (leave()) return
		answer.reject(why)
		if (run_id !== undefined) void stop(ctx, run_id)
	}
	const abort = (): void => giveUp(signal.reason)

	signal.addEventListener('abort', abort, { once: true })
	try {
		signal.throwIfAborted()
		const { run_id: run, queued, answered } = await say(runs, asked, listen)
		const before = held
		held = null
		for (const event of before) hear(run, event)
		// It left while the run was being taken in, perhaps before there was anything to stop.
		if (signal.aborted) await stop(ctx, run)
		else if (!isOver) {
			if (queued) unwatch = watchAhead(ctx, queued, giveUp)
			unwatchBelow = runs.watchAsked(run, (question) => {
				if (question && question.question_id !== answered && !isOver) heed(run, told.askBelow(question))
			})
		}
		return { run_id: run, answer: answer.promise }
	} catch (error) {
		leave()
		throw error
	}
}

/**
 * `listen` is called before anything can happen in the run. `queued`: it waits behind another of its conversation.
 * `answered`: the question to which this was the answer.
 */
async function say(
	runs: Runs,
	{ agent, start, stays, also }: Asked,
	listen: (run_id: string) => void,
): Promise<{ run_id: string; queued?: RunRecord; answered?: string }> {
	const waiting = stays ? await runs.active(agent, start.conversation) : undefined
	const question = waiting?.trigger === TRIGGER ? await runs.asked(waiting) : null
	if (waiting && question) {
		const { run_id } = waiting
		if (start.given?.since?.length)
			throw new Fault(
				'conflict',
				'the agent has asked a question in this conversation; answer it, or begin another one',
			)
		listen(run_id)
		try {
			await runs.answer(agent, question.question_id, start.prompt, await also?.(run_id))
			return { run_id, answered: question.question_id }
		} catch (error) {
			// Somebody else answered, or the run was stopped meanwhile: then it is a message like any other.
			if (!isFault(error, 'already_answered', 'conflict', 'not_found')) throw error
		}
	}
	const taken = async (run_id: string): Promise<Op[]> => {
		listen(run_id)
		return (await also?.(run_id)) ?? []
	}
	const run = await runs.start(agent, { ...start, trigger: TRIGGER, also: taken })
	return { run_id: run.run_id, ...(run.status === 'queued' && { queued: run }) }
}

async function conclude(
	ctx: Place,
	{ stays }: Asked,
	run_id: string,
	{ text, usage, finish_reason }: AnswerStream,
	end: End,
): Promise<Answer> {
	const answer: Answer = { text, usage, tool_calls: [], finish_reason: 'stop' }
	switch (end.status) {
		case 'failed':
			throw fromWire(end.error)
		case 'contradicts': {
			await stop(ctx, run_id)
			const message =
				'the model broke off and came to other words when it was asked again, so what was streamed is not its answer; the run was stopped, send the request again'
			throw new Fault('model_interrupted', message)
		}
		case 'asks':
			if (!stays) await stop(ctx, run_id)
			return answer
		case 'completed':
			break
	}
	const { tool_calls = [] } = await ctx.use('runs').get(run_id)
	if (tool_calls.length > 0) {
		const calls = tool_calls.map((call, at) => ({ ...call, id: callId(run_id, at) }))
		return { ...answer, tool_calls: calls, finish_reason: 'tool_calls' }
	}
	const isCut = finish_reason === 'length' || finish_reason === 'content_filter'
	return isCut ? { ...answer, finish_reason } : answer
}

/** It may have ended meanwhile. */
async function stop(ctx: Place, run_id: string): Promise<void> {
	await ctx
		.use('runs')
		.cancel(run_id)
		.catch((error: unknown) => {
			if (!isFault(error, 'conflict', 'not_found'))
				ctx.log.error({ err: error, run_id }, 'the run of a client that left could not be stopped')
		})
}
