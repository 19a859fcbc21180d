/** Follows one run to its result. */
import { isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { AnswerStream } from './answer-stream.ts'
import { watchOpenQuestion } from './open-question.ts'
import { openQuestion, stateAfter } from './run-state.ts'
import type { RunState } from './run-state.ts'
import type { OpenQuestion, RunListener, RunRecord, RunResult, Runs } from './contract.ts'

export type FollowerDeps = Pick<Context, 'store' | 'events' | 'log'>

interface RelayedQuestion {
	asked: OpenQuestion
	withdrawn: AbortController
}

export type Follower = ReturnType<typeof openFollower>

/**
 * Buffers the events of the run from now on, and delivers them after `begin`, when it is certain that the message belongs to this
 * run.
 */
export function openFollower({ store, events, log }: FollowerDeps, runs: Runs, run_id: string, listener: RunListener) {
	const { signal, ask } = listener
	const result = Promise.withResolvers<RunResult>()
	result.promise.catch(() => {}) // nothing awaits it after the caller has left
	const answer = new AnswerStream(listener.text)
	/** Events before `begin`; null after it. */
	let buffer: EventEnvelope[] | null = []
	let state: RunState = { status: 'queued', question: null }
	/** The question that the listener is answering. */
	let asking: RelayedQuestion | undefined
	/** The id of the question that this follower answered last. */
	let lastAnswered: string | undefined
	let watchesBelow = false
	let isOver = false
	signal?.addEventListener('abort', leave, { once: true })
	/** Functions that `close` calls. */
	const releases = [
		events.subscribe({ run_id }, ({ event }) => {
			if (buffer) buffer.push(event)
			else handle(event)
		}),
		() => signal?.removeEventListener('abort', leave),
	]
	if (signal?.aborted) leave()

	return {
		run_id,
		result: result.promise,
		/**
		 * `record`: the run's record, read after the follower was opened. `answered`: id of the question that the message answered.
		 * With neither, the run is new and all of its events are buffered.
		 */
		begin({ record, answered }: { record?: RunRecord; answered?: string | undefined } = {}): void {
			lastAnswered = answered
			const buffered = buffer ?? []
			buffer = null
			if (isOver) return
			const ended = record && resultIn(record)
			if (ended) finish(ended)
			else if (record) apply(record)
			for (const event of buffered) handle(event)
			if (record || answered !== undefined) watchBelow()
		},
		/** `release` is called when the run is no longer followed, which may be within this call. */
		own(release: () => void): void {
			if (isOver) release()
			else releases.push(release)
		},
		finish,
		close,
	}

	/** Resolves the result with the current text. */
	function finish(end: Pick<RunResult, 'status'> & Partial<RunResult>): void {
		if (!close()) return
		const { text, isWhole, model, usage, finish_reason } = answer
		result.resolve({ text, isWhole, model, usage, finish_reason, error: null, ...end })
	}

	/** Stops following the run. False if that happened before. */
	function close(): boolean {
		if (isOver) return false
		isOver = true
		withdraw()
		for (const release of releases) release()
		return true
	}

	function leave(): void {
		if (!close()) return
		result.reject(signal?.reason)
		// Before `begin` it is unknown whether the message belongs to this run.
		if (!listener.stopsRun || buffer) return
		runs
			.stop(run_id)
			.catch((error: unknown) =>
				log.error({ err: error, run_id }, 'the run of a caller that left could not be stopped'),
			)
	}

	function handle(event: EventEnvelope): void {
		if (isOver) return
		listener.event?.(event)
		const end = answer.handle(event)
		if (isBroken()) return
		if (end) return finish(end)
		apply(stateAfter(state, event))
		if (event.payload.waits_for !== undefined) watchBelow()
	}

	/** Most runs never wait for a sub-agent, and watching reads the record. */
	function watchBelow(): void {
		if (isOver || watchesBelow) return
		watchesBelow = true
		releases.push(
			watchOpenQuestion({ store, events, log }, run_id, (asked) => {
				if (isOver) return
				if (asked) relay(asked)
				else if (asking?.asked.run_id !== run_id) withdraw()
			}),
		)
	}

	function apply(next: RunState): void {
		if (next === state) return
		const [before, open] = [openQuestion(state), openQuestion(next)]
		state = next
		if (open) relay({ ...open, run_id })
		else if (before) withdraw()
	}

	function relay(asked: OpenQuestion): void {
		const { question_id } = asked
		if (question_id === lastAnswered || question_id === asking?.asked.question_id) return
		withdraw()
		if (!ask) return endWith(asked)
		asking = { asked, withdrawn: new AbortController() }
		sendAnswer(asking, ask).catch((error: unknown) => {
			if (close()) result.reject(error)
		})
	}

	async function sendAnswer(current: RelayedQuestion, ask: NonNullable<RunListener['ask']>): Promise<void> {
		const { asked, withdrawn } = current
		const given = await ask(asked, withdrawn.signal, asked.run_id !== run_id)
		if (asking !== current) return
		asking = undefined
		if (given === null) return endWith(asked)
		lastAnswered = asked.question_id
		const { agent: name, agent_uid: uid } = await runs.get(run_id)
		try {
			await runs.answer({ name, uid }, asked.question_id, given)
		} catch (error) {
			// The question was answered elsewhere or withdrawn: the run's events show what follows.
			if (!isNotOpen(error)) throw error
		}
	}

	/** The listener does not answer the question: the text ends with it. */
	function endWith(asked: OpenQuestion): void {
		answer.ask(questionText(asked, run_id))
		if (!isBroken()) finish({ status: 'asks', question: asked })
	}

	function withdraw(): void {
		asking?.withdrawn.abort()
		asking = undefined
	}

	function isBroken(): boolean {
		if (answer.isWhole || !listener.until?.includes('broken')) return false
		finish({ status: 'broken' })
		return true
	}
}

/** Whether `error` means that a question is no longer open: it was answered or withdrawn, or its run has ended. */
export function isNotOpen(error: unknown): boolean {
	return isFault(error, 'already_answered', 'conflict', 'not_found')
}

/** How a run ended, by its record; undefined if it has not. `asked`: the question that it waits for. */
export function resultIn(run: RunRecord, asked: OpenQuestion | null = null): RunResult | undefined {
	const { run_id, status, usage } = run
	const result = { text: run.answer ?? '', isWhole: true, model: null, usage, finish_reason: '', error: null }
	switch (status) {
		case 'completed':
			return { ...result, status }
		case 'failed':
			return { ...result, status, error: run.error ?? { code: 'internal', message: 'the run failed' } }
		case 'stopped':
			return { ...result, status: 'failed', error: { code: 'stopped', message: 'the run was stopped' } }
		default: {
			if (!asked) return undefined
			return { ...result, status: 'asks', text: questionText(asked, run_id), question: asked }
		}
	}
}

/** The question with its options. `followed`: the id of the followed run. */
function questionText({ run_id, kind, question, options = [] }: OpenQuestion, followed: string): string {
	// The text of an approval explains its options.
	const listed = kind === 'approval' ? [] : options.map((option) => `- ${option}`)
	const text = [question, ...listed].join('\n')
	return run_id === followed ? text : `A sub-agent asks:\n\n${text}`
}
