/**
 * The agent loop: asks the model, has its tool calls made, asks again, until an answer calls no tool.
 *
 * It is pure over what it is given. All that it knows of a run stands in the order's journal, so a run that was cut off
 * anywhere continues by calling it again with the journal so far, and reaches the same end.
 */
import { Fault, toWire } from '../core/errors.ts'
import { usageOf } from '../core/protocol.ts'
import type { Calls, Method, ModelAnswer, NewEvent, RunOrder, RunOutcome, Step } from '../core/protocol.ts'
import { nextCall, requestOf, splitCalls, withUniqueIds } from './conversation.ts'
import { checkLimits, wallTimeExceeded } from './limits.ts'
import type { ModelReply, ModelRequest } from './models/provider.ts'

export interface LoopIo {
	/** Aborts when the run is to be stopped. */
	signal: AbortSignal
	emit(event: NewEvent): void
	stream(content: string): void
	/** Settles once main has done it and journalled it. */
	call<M extends Method>(method: M, params: Calls[M]['params']): Promise<Calls[M]['result']>
}

export interface ModelIo {
	/** Aborts when the run is to be stopped, or its wall time is over. */
	signal: AbortSignal
	/** The number of this model answer in the run, from 1. */
	step: number
	emit(event: NewEvent): void
	stream(content: string): void
}

/** Asks the models of an order until one has answered. Never rejects; see models/provider.ts. */
export type AskModel = (request: ModelRequest, io: ModelIo) => Promise<ModelReply>

/** Never rejects: a failed run is an outcome too. */
export async function runLoop(order: RunOrder, io: LoopIo, askModel: AskModel): Promise<RunOutcome> {
	const journal = [...order.journal]
	const time = wallTime(order, io.signal)
	try {
		return await goOn(order, journal, io, askModel, time)
	} catch (error) {
		if (io.signal.aborted) return { status: 'stopped' }
		return { status: 'failed', error: toWire(error), usage: usageOf(journal) }
	} finally {
		time.end()
	}
}

/** Adds to the journal what gets finished. */
async function goOn(
	order: RunOrder,
	journal: Step[],
	io: LoopIo,
	askModel: AskModel,
	time: WallTime,
): Promise<RunOutcome> {
	let elsewhere = order.tokens_elsewhere
	/** Calls of the client's tools, once the calls beside them are made. */
	let ending: ModelAnswer | undefined
	const last = journal.at(-1)
	if (last?.kind === 'model' && last.answer.tool_calls.length === 0) return completed(last.answer, journal)
	for (;;) {
		const call = nextCall(journal)
		time.check()
		if (ending && !call) return completed(ending, [...journal, { kind: 'model', answer: ending }])
		checkLimits(order.limits, journal, call ? 'tool' : 'model', elsewhere)
		if (call) {
			const reply = await io.call('tool', { call })
			if (reply.status === 'paused') return reply
			if (reply.waited_ms !== undefined) time.extend(reply.waited_ms)
			journal.push({ kind: 'tool', call_id: call.id, ok: reply.ok, content: reply.content })
			continue
		}
		const answer = await ask(order, journal, io, askModel, time)
		const { own, last = own } = splitCalls(answer, order)
		if (own.tool_calls.length === 0) return completed(last, [...journal, { kind: 'model', answer: last }])
		const receipt = await io.call('model', { answer: own })
		elsewhere = receipt?.tokens_elsewhere ?? elsewhere
		journal.push({ kind: 'model', answer: receipt?.answer ?? own })
		if (last !== own) ending = last
	}
}

async function ask(
	order: RunOrder,
	journal: Step[],
	io: LoopIo,
	askModel: AskModel,
	time: WallTime,
): Promise<ModelAnswer> {
	const reply = await askModel(requestOf(order, journal), {
		signal: time.signal,
		step: journal.filter((step) => step.kind === 'model').length + 1,
		emit: io.emit,
		stream: io.stream,
	})
	time.check()
	if (reply.status === 'failed') throw new Fault(reply.failure.code, reply.failure.message)
	const { answer } = reply
	return { ...answer, tool_calls: withUniqueIds(answer.tool_calls, journal, order.since) }
}

function completed(answer: ModelAnswer, journal: Step[]): RunOutcome {
	return { status: 'completed', answer, usage: usageOf(journal) }
}

/** What a timer can hold; about 24 days. */
const TIMER_LIMIT_MS = 2 ** 31 - 1

interface WallTime {
	/** Aborts with the run's own signal, and when the time is over. */
	readonly signal: AbortSignal
	/** Throws if the run must not continue. */
	check(): void
	/** Gives back what was no active time. To be called between model calls only: it may make a new signal. */
	extend(ms: number): void
	end(): void
}

/** A running tool call is not cut off here: main does that, once the run does not end by itself. */
function wallTime({ limits, remaining_ms }: RunOrder, runSignal: AbortSignal): WallTime {
	let controller = new AbortController()
	let over = remaining_ms <= 0
	let ends = performance.now() + remaining_ms
	let timer: NodeJS.Timeout | undefined
	const arm = (): void => {
		clearTimeout(timer)
		timer = setTimeout(
			() => {
				over = true
				controller.abort()
			},
			Math.min(Math.max(0, ends - performance.now()), TIMER_LIMIT_MS),
		)
	}
	arm()
	const stop = (): void => controller.abort(runSignal.reason)
	if (runSignal.aborted) stop()
	else runSignal.addEventListener('abort', stop, { once: true })
	return {
		get signal() {
			return controller.signal
		},
		check() {
			if (runSignal.aborted) throw new Fault('stopped', String(runSignal.reason))
			if (over) throw wallTimeExceeded(limits)
		},
		extend(ms) {
			ends += ms
			if (over && !runSignal.aborted) controller = new AbortController()
			over = ends <= performance.now()
			arm()
		},
		end() {
			clearTimeout(timer)
			runSignal.removeEventListener('abort', stop)
		},
	}
}
