/** Questions that a tool asks during its call, such as an MCP server. The call remains in flight. */
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { QuestionText } from '../../core/plugin.ts'
import type { NewEvent, ToolCallRequest } from '../../core/protocol.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Op, Store } from '../../core/store/ports.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { AskedQuestion, Question, RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { untilAnswered } from './open-waits.ts'
import { isEnded } from './run-state.ts'
import type { Work } from './work.ts'

export type QuestionQueue = ReturnType<typeof openQuestionQueue>

/** Queued questions of a run. */
const WAITING_LIMIT = 16
/** Characters shown of a question or an option. */
const TEXT_LIMIT = 4_000
const OPTIONS_LIMIT = 64

/**
 * Concurrent calls of a run share one queue, so it shows one question at a time. Calls that pause the run use the queue too:
 * a pause would replace the open question. `signal` aborts when the run has ended, which withdraws the open questions and
 * refuses later ones. `hold` stops its wall clock until the returned function is called.
 */
export function openQuestionQueue(work: Work, signal: AbortSignal, hold: () => () => void) {
	const queue = openSerialQueue()
	let waited_ms = 0

	const askNow = async (call: ToolCallRequest, text: QuestionText, over: AbortSignal): Promise<string> => {
		const release = hold()
		const began = performance.now()
		try {
			return await askOnce(work, call, text, over)
		} finally {
			waited_ms += performance.now() - began
			release()
		}
	}
	return {
		signal,
		/** Settles once no question is open. */
		idle: queue.idle,
		/** Does `work`, which may pause the run, once no earlier question is open. Throws `stopped` if the run has ended. */
		whileNoneIsOpen<T>(work: () => Promise<T>): Promise<T> {
			return queue.run(() => {
				if (signal.aborted) throw gone()
				return work()
			})
		},
		/** The questions of one call. */
		of(call: ToolCallRequest) {
			const closed = new AbortController()
			const over = AbortSignal.any([signal, closed.signal])
			const own = new Set<Promise<unknown>>()
			return {
				/** Settles with the answer; a second question waits for the first. See `ToolCall.ask`. */
				async ask(text: QuestionText): Promise<string> {
					if (queue.length() >= WAITING_LIMIT) throw tooMany()
					const answer = queue.run(() => askNow(call, text, over))
					own.add(answer)
					answer.finally(() => own.delete(answer)).catch(() => {})
					return answer
				},
				/** Withdraws the open question, and refuses later ones. */
				async close(): Promise<void> {
					closed.abort('the call has ended')
					await Promise.allSettled(own)
				},
			}
		},
		/** Milliseconds spent waiting for answers since the last call of `takeWaited`. */
		takeWaited(): number {
			const waited = waited_ms
			waited_ms = 0
			return waited
		},
	}
}

function tooMany(): Fault {
	return new Fault('queue_full', `${WAITING_LIMIT} questions of this run wait already; ask one after another`)
}

async function askOnce(work: Work, call: ToolCallRequest, text: QuestionText, over: AbortSignal): Promise<string> {
	const { ctx, run, log } = work
	const { store } = ctx
	// The run would show this question instead of the approval, and could take the answer to one for the other's.
	await untilAnswered(work, over)
	if (over.aborted) throw gone()
	const question = questionOf(work, call, text)
	const { question_id } = question
	const answered = Promise.withResolvers<Question>()
	const stopWatching = store.watch<Question>(keys.question(run.agent_uid, question_id), ({ value }) => {
		if (typeof value?.answer === 'string') answered.resolve(value)
		else if (value?.closed === 'expired') answered.reject(expired())
		else if (value?.closed) answered.reject(gone())
	})
	const stopped = (): void => answered.reject(gone())
	over.addEventListener('abort', stopped, { once: true })
	answered.promise.catch(() => {}) // awaited below, unless something fails before
	try {
		await open(store, run, question)
		if (over.aborted) stopped()
		await log.append([
			{ event_type: 'question.asked', payload: { ...textOf(question) } },
			{ event_type: 'run.paused', payload: { question_id } },
		])
		const answer = await answered.promise
		await log.append(answerEvents(answer))
		return answer.answer ?? ''
	} catch (error) {
		const closed = await closeQuestion(store, run.agent_uid, question_id, 'withdrawn')
		// A stopped run emits no further events.
		if (closed && !log.isClosed() && !work.lock.signal.aborted)
			await log.append([resumedEvent(closed, question_id)]).catch(() => {})
		throw error
	} finally {
		stopWatching()
		over.removeEventListener('abort', stopped)
	}
}

/** Writes the question and pauses the run in one commit. Precedes the event, whose readers look up the question. */
async function open(store: Store, run: RunRecord, question: Question): Promise<void> {
	await change(store, agentScope(run.agent_uid), async () => {
		const entry = await store.get<RunRecord>(keys.run(run.agent_uid, run.run_id))
		if (!entry || isEnded(entry.value.status)) throw gone()
		const value: RunRecord = { ...entry.value, status: 'paused', question: textOf(question) }
		const ops: Op[] = [
			{ key: keys.question(run.agent_uid, question.question_id), value: question, expect: null },
			{ key: entry.key, value, expect: entry.rev },
		]
		return { ops, result: null }
	})
}

/** The writes that answer or close an open question, by `fields`, and let its run continue unless it has ended. */
export async function settleOps(
	store: Store,
	uid: string,
	{ key, value: question, rev }: Entry<Question>,
	fields: Partial<Question>,
): Promise<{ ops: Op[]; run: RunRecord | undefined }> {
	const ops: Op[] = [{ key, value: { ...question, ...fields }, expect: rev }]
	const entry = await store.get<RunRecord>(keys.run(uid, question.run_id))
	if (!entry || isEnded(entry.value.status)) return { ops, run: entry?.value }
	const run: RunRecord = { ...entry.value, status: 'started', question: null }
	return { ops: [...ops, { key: entry.key, value: run, expect: entry.rev }], run }
}

/** Closes an open question, and ends the pause that it caused. Returns why it is closed; null if it was answered or never asked. */
export function closeQuestion(
	store: Store,
	uid: string,
	question_id: string,
	why: NonNullable<Question['closed']>,
): Promise<Question['closed'] | null> {
	return change<Question['closed'] | null>(store, agentScope(uid), async () => {
		const question = await store.get<Question>(keys.question(uid, question_id))
		if (!question || question.value.answer !== null) return { result: null }
		if (question.value.closed) return { result: question.value.closed }
		const ops: Op[] = [{ key: question.key, value: { ...question.value, closed: why }, expect: question.rev }]
		const run = await store.get<RunRecord>(keys.run(uid, question.value.run_id))
		if (run?.value.question?.question_id === question_id) {
			const value: RunRecord = { ...run.value, status: 'started', question: null }
			ops.push({ key: run.key, value, expect: run.rev })
		}
		return { ops, result: why }
	})
}

function questionOf({ run, log }: Work, call: ToolCallRequest, { question, options }: QuestionText): Question {
	if (options && options.length > OPTIONS_LIMIT)
		throw new Fault('invalid_arguments', `a question may have at most ${OPTIONS_LIMIT} options, not ${options.length}`)
	return {
		question: cut(question, log),
		...(options && { options: options.map((option) => cut(option, log)) }),
		question_id: newId(),
		...askedBy(run, call),
		live: true,
	}
}

/** The common fields of a new question. */
export function askedBy(
	{ run_id }: RunRecord,
	{ id: call_id }: ToolCallRequest,
): Pick<Question, 'run_id' | 'call_id' | 'asked_at' | 'answer' | 'answered_at'> {
	return { run_id, call_id, asked_at: now(), answer: null, answered_at: null }
}

/** The events of an answer: the run continues. */
export function answerEvents({ question_id, answer, given, actor }: Question): NewEvent[] {
	const payload = { question_id, answer, ...given, ...(actor && { actor }) }
	return [{ event_type: 'question.answered', payload }, resumedEvent('answer', question_id)]
}

export function resumedEvent(reason: string, question_id: string): NewEvent {
	return { event_type: 'run.resumed', payload: { reason, question_id } }
}

/** The fields that people see. */
export function textOf(asked: AskedQuestion): AskedQuestion {
	const { question_id, question, options, kind, tool, arguments: args, expires_at } = asked
	return {
		question_id,
		question,
		...(options && { options }),
		...(kind && { kind }),
		...(tool !== undefined && { tool }),
		...(args && { arguments: args }),
		...(expires_at !== undefined && { expires_at }),
	}
}

function cut(text: string, { redactor }: Work['log']): string {
	const { text: shown, dropped } = redactor.cut(text, TEXT_LIMIT, 'event')
	return dropped === 0 ? shown : `${shown}…`
}

function gone(): Fault {
	return new Fault('stopped', 'the run, or the call that asked, has ended; nothing waits for the answer')
}

function expired(): Fault {
	return new Fault('question_expired', 'nobody answered the question in time (runs.question_ttl_days)')
}
