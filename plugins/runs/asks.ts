/** Questions in the middle of a call that stays in flight, such as one that an MCP server has under way. */
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/ids.ts'
import type { QuestionText } from '../../core/plugin.ts'
import type { NewEvent, ToolCallRequest } from '../../core/protocol.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import type { Question, RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { change, isEnded } from './records.ts'
import type { Work } from './waits.ts'

export interface Asks {
	/** Settles with the answer; a second question waits for the first. See `ToolCall.ask`. */
	ask(text: QuestionText): Promise<string>
	/** Takes back what is open, and refuses what comes later. */
	close(): Promise<void>
	/** Time for which somebody was waited for. */
	readonly waited_ms: number
}

/** Questions of one call that wait for their turn. */
const WAITING_LIMIT = 16
/** Characters of a question, or an option, that are shown. */
const TEXT_LIMIT = 4_000
const OPTIONS_LIMIT = 64

/** `signal` aborts where the run is over; `hold` stops the clock of its wall time until what it answers is called. */
export function openAsks(work: Work, call: ToolCallRequest, signal: AbortSignal, hold: () => () => void): Asks {
	const withdrawn = new AbortController()
	const over = AbortSignal.any([signal, withdrawn.signal])
	let last: Promise<unknown> = Promise.resolve()
	let waiting = 0
	let waited_ms = 0

	const askNow = async (text: QuestionText): Promise<string> => {
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
		async ask(text) {
			if (waiting >= WAITING_LIMIT)
				throw new Fault('queue_full', `${WAITING_LIMIT} questions of this call wait already; ask one after another`)
			waiting++
			const answered = last.then(() => askNow(text))
			last = answered.then(
				() => waiting--,
				() => waiting--,
			)
			return answered
		},
		async close() {
			withdrawn.abort()
			await last
		},
		get waited_ms() {
			return waited_ms
		},
	}
}

async function askOnce(work: Work, call: ToolCallRequest, text: QuestionText, over: AbortSignal): Promise<string> {
	const { ctx, run, log } = work
	const { store } = ctx
	if (over.aborted) throw gone()
	const question = questionOf(run, call, text)
	const { question_id } = question
	const answered = Promise.withResolvers<string>()
	const stopWatching = store.watch<Question>(keys.question(run.agent_uid, question_id), ({ value }) => {
		if (typeof value?.answer === 'string') answered.resolve(value.answer)
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
			{ event_type: 'question.asked', payload: { ...shown(question) } },
			{ event_type: 'run.paused', payload: { question_id } },
		])
		const answer = await answered.promise
		await log.append([{ event_type: 'question.answered', payload: { question_id, answer } }, resumed('answer')])
		return answer
	} catch (error) {
		const closed = await close(store, run.agent_uid, question_id, 'withdrawn')
		// Of a run that was stopped nothing more is told.
		if (closed && !log.closed && !work.turn.signal.aborted) await log.append([resumed(closed)]).catch(() => {})
		throw error
	} finally {
		stopWatching()
		over.removeEventListener('abort', stopped)
	}

	function resumed(reason: string): NewEvent {
		return { event_type: 'run.resumed', payload: { reason, question_id } }
	}
}

/** The question, and that the run is paused by it, in one write; before anybody is told, so that who hears of it finds it. */
async function open(store: Store, run: RunRecord, question: Question): Promise<void> {
	await change(store, run.agent_uid, async () => {
		const entry = await store.get<RunRecord>(keys.run(run.agent_uid, run.run_id))
		if (!entry || isEnded(entry.value.status)) throw gone()
		const value: RunRecord = { ...entry.value, status: 'paused', question: shown(question) }
		const ops: Op[] = [
			{ key: keys.question(run.agent_uid, question.question_id), value: question, expect: null },
			{ key: entry.key, value, expect: entry.rev },
		]
		return { ops, result: null }
	})
}

/**
 * Takes an open question back, and the pause that it made. Answers with why it is closed: somebody else may have been
 * faster. Null where it was answered, or never asked.
 */
export function close(
	store: Store,
	uid: string,
	question_id: string,
	why: NonNullable<Question['closed']>,
): Promise<Question['closed'] | null> {
	return change<Question['closed'] | null>(store, uid, async () => {
		const question = await store.get<Question>(keys.question(uid, question_id))
		if (!question || question.value.answer !== null) return { ops: null, result: null }
		if (question.value.closed) return { ops: null, result: question.value.closed }
		const ops: Op[] = [{ key: question.key, value: { ...question.value, closed: why }, expect: question.rev }]
		const run = await store.get<RunRecord>(keys.run(uid, question.value.run_id))
		if (run?.value.question?.question_id === question_id) {
			const value: RunRecord = { ...run.value, status: 'started', question: null }
			ops.push({ key: run.key, value, expect: run.rev })
		}
		return { ops, result: why }
	})
}

function questionOf(run: RunRecord, call: ToolCallRequest, { question, options }: QuestionText): Question {
	if (options && options.length > OPTIONS_LIMIT)
		throw new Fault('invalid_arguments', `a question may have at most ${OPTIONS_LIMIT} options, not ${options.length}`)
	return {
		question: cut(question),
		...(options && { options: options.map(cut) }),
		question_id: newId(),
		run_id: run.run_id,
		call_id: call.id,
		asked_at: now(),
		answer: null,
		answered_at: null,
		live: true,
	}
}

function shown({ question_id, question, options }: Question): QuestionText & { question_id: string } {
	return { question_id, question, ...(options && { options }) }
}

function cut(text: string): string {
	return text.length <= TEXT_LIMIT ? text : `${text.slice(0, TEXT_LIMIT)}…`
}

function gone(): Fault {
	return new Fault('stopped', 'the run, or the call that asked, is over; nobody waits for the answer')
}

function expired(): Fault {
	return new Fault('question_expired', 'nobody answered the question in time (runs.question_ttl_days)')
}
