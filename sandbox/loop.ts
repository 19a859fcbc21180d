/**
 * The agent loop: asks the model, has its tool calls made, and asks again, until an answer calls no tool.
 *
 * It has no state besides the order's journal. So a run that was interrupted anywhere resumes when the loop is called again with
 * the journal so far.
 */
import { Fault, isFault, toWire } from '../core/errors.ts'
import { addUsage, usageOf } from '../core/protocol.ts'
import type {
	EndReason,
	ModelAnswer,
	ModelUsage,
	Reservation,
	RunOrder,
	RunOutcome,
	Step,
	ToolCallRequest,
	ToolReply,
	Usage,
} from '../core/protocol.ts'
import { cachedReader } from './attachments/load.ts'
import { makeCalls, nextCalls } from './calls.ts'
import { requestOf, splitCalls, withUniqueIds } from './conversation.ts'
import { exceeded, hasTokensLeft, lastCallFor, modelCallsIn, remarkDue } from './limits.ts'
import type { Spending } from './limits.ts'
import type { AskModel, ModelIo } from './ask-model.ts'
import type { Link } from './link.ts'
import { askForFormedAnswer } from './form/formed-answer.ts'
import { answerBound } from './models/answer-bound.ts'
import type { ModelRequest } from './models/provider.ts'
import { wallTime } from './wall-time.ts'
import type { WallTime } from './wall-time.ts'
import { askForCompleteAnswer } from './complete-answer.ts'

/** Never rejects: a failed run is an outcome too. */
export async function runLoop(order: RunOrder, io: Link, askModel: AskModel): Promise<RunOutcome> {
	const journal = [...order.journal]
	const time = wallTime(order, io.signal)
	const spent: ModelUsage[] = []
	try {
		const { limits, tokens_elsewhere: elsewhere = 0 } = order
		return await continueRun({ order, limits, journal, spent, io, askModel, time, elsewhere })
	} catch (error) {
		if (io.signal.aborted) return { status: 'stopped', ...(spent.length > 0 && { spent }) }
		const usage = usageOf(journal)
		for (const call of spent) addUsage(usage, call.usage)
		return { status: 'failed', error: toWire(error), usage, spent }
	} finally {
		time.end()
	}
}

interface RunState extends Spending {
	order: RunOrder
	/** Finished steps are appended. */
	journal: Step[]
	/** Usage that is not counted yet: it is counted with the next journalled step, or with the outcome. */
	spent: ModelUsage[]
	io: Link
	askModel: AskModel
	time: WallTime
}

async function continueRun(state: RunState): Promise<RunOutcome> {
	const { order, journal, io, time, spent } = state
	const completed = (answer: ModelAnswer, steps: Step[], ended_by?: EndReason): RunOutcome => {
		return { status: 'completed', answer, usage: usageOf(steps), spent, ...(ended_by && { ended_by }) }
	}
	/** The answer with calls of the client's tools, which ends the run once the other calls of the same answer are made. */
	let ending: ModelAnswer | undefined
	const last = journal.at(-1)
	if (last?.kind === 'model' && last.answer.tool_calls.length === 0) {
		return completed(last.answer, journal, lastCallFor(journal))
	}
	for (;;) {
		time.check()
		const calls = nextCalls(journal, order.concurrent_tools)
		if (calls.length > 0) {
			const replies = await makeCalls(calls, (call) => callTool(state, call))
			const paused = replies.find((reply) => reply.status === 'paused')
			if (paused) return paused
			continue
		}
		if (ending) return completed(ending, [...journal, { kind: 'model', answer: ending }])
		await remark(state)
		const reason = lastCallFor(journal)
		if (reason) {
			const answer = await askLast(state, reason)
			return completed(answer, [...journal, { kind: 'model', answer }], reason)
		}
		const answer = await ask(state)
		const { own, last = own } = splitCalls(answer, order)
		if (own.tool_calls.length === 0) return completed(last, [...journal, { kind: 'model', answer: last }])
		const receipt = await io.call('model', { answer: own, spent: spent.splice(0) })
		state.elsewhere = receipt?.tokens_elsewhere ?? state.elsewhere
		journal.push({ kind: 'model', answer: receipt?.answer ?? own })
		if (last !== own) ending = last
	}
}

async function callTool({ journal, io, time }: RunState, call: ToolCallRequest): Promise<ToolReply> {
	const reply = await io.call('tool', { call })
	if (reply.status === 'paused') return reply
	if (reply.waited_ms !== undefined) time.extend(reply.waited_ms)
	const { ok, content, attachments } = reply
	journal.push({ kind: 'tool', call_id: call.id, ok, content, ...(attachments && { attachments }) })
	return reply
}

/** Adds a remark if one is due. Journalled, so that the model sees the same remark when the run resumes in another thread. */
async function remark(state: RunState): Promise<void> {
	const due = remarkDue(state, state.time.left_ms())
	if (!due) return
	await state.io.call('remark', due)
	state.journal.push({ kind: 'remark', ...due })
}

/** Makes the last call, without tools. An answer that still calls tools is not accepted: its text only announces the calls. */
async function askLast(state: RunState, reason: EndReason): Promise<ModelAnswer> {
	const fault = exceeded(reason, state)
	try {
		const { call: _, ...form } = state.order.form ?? {}
		const answer = await ask(state, { tools: [], form })
		if (answer.content.trim() !== '' && answer.tool_calls.length === 0) return answer
	} catch (error) {
		state.time.check()
		if (isFault(error, 'limit_tokens', 'limit_cost')) throw error // a limit of the day
		throw new Fault(fault.code, `${fault.message}; its last call failed: ${toWire(error).message}`, { cause: error })
	}
	throw fault
}

async function ask(state: RunState, change: Partial<ModelRequest> = {}): Promise<ModelAnswer> {
	const { order, journal, spent, io, askModel, time } = state
	/** Why the last attempt of the call failed. */
	let failure: string | undefined
	const modelIo: ModelIo = {
		signal: time.signal(),
		step: modelCallsIn(journal) + 1,
		emit(event) {
			const { provider, message } = event.payload
			if (event.event_type === 'model.retry') failure = `${String(provider)}: ${String(message)}`
			io.emit(event)
		},
		stream: io.stream,
		blob: cachedReader(order.run_id, ({ blob, media_type }) => io.call('blob', { blob, media_type })),
		spent: (call) => void spent.push(call),
		...(order.reserves && { reserve: (call) => io.call('reserve', withSpent(call, spent)) }),
		async slot(call) {
			const resume = time.hold()
			await io.call('slot', call).finally(resume)
			// It rejects only if the run is stopped, which also releases the slot.
			return () => void io.call('leave_slot', null).catch(() => {})
		},
		...(order.keeps_requests && { sent: io.sent }),
	}
	const reply = await askForFormedAnswer(
		(request) =>
			askForCompleteAnswer(askModel, request, modelIo, {
				mayContinue: ({ provider, model }, used) => isUnbounded(order, provider, model) && hasTokensLeft(state, used),
				mayBeEmpty: hasStopTexts(order),
			}),
		{ ...requestOf(order, journal), ...change },
		io.emit,
		(used) => hasTokensLeft(state, used),
	)
	time.check(reply.status === 'failed' ? failure : undefined)
	if (reply.status === 'failed') {
		const { code, message, provider_code, status } = reply.failure
		throw new Fault(code, message, { provider_code, provider_status: status })
	}
	const { answer } = reply
	return { ...answer, tool_calls: withUniqueIds(answer.tool_calls, journal, order.since) }
}

/** An answer with a configured maximum length is not continued. */
function isUnbounded({ models }: RunOrder, provider: string, model: string): boolean {
	const order = models.find((one) => one.provider === provider && one.model === model)
	return order !== undefined && answerBound(order) === undefined
}

/** Whether the caller of the run set stop texts: an answer that begins with one is empty. */
function hasStopTexts({ models }: RunOrder): boolean {
	return models.some(({ sampling }) => [sampling?.stop ?? []].flat().length > 0)
}

/** Adds the usage that is not counted yet to a reservation. */
function withSpent(call: Reservation, spent: readonly ModelUsage[]): Reservation {
	const sum: Usage = { input_tokens: 0, output_tokens: 0 }
	for (const { usage } of spent) addUsage(sum, usage)
	const cost = call.cost === undefined ? {} : { cost: call.cost + (sum.cost ?? 0) }
	return { ...call, tokens: call.tokens + sum.input_tokens + sum.output_tokens, ...cost }
}
