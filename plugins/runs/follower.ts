/** Follows one run to its result. */
import { isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { AnswerStream } from './answer-stream.ts'
import { watchOpenQuestion } from './open-question.ts'
import { openQuestion, stateAfter } from './run-state.ts'
import type { RunState } from './run-state.ts'
import type { OpenQuestion, Exchange, RunListener, RunRecord, RunResult, Runs } from './contract.ts'

export type FollowerDeps = Pick<Context, 'store' | 'events' | 'log'>

interface RelayedQuestion {
	asked: OpenQuestion
	withdrawn: AbortController
}

/**
 * Buffers the events of the run from its construction on, and delivers them after `begin`, when it is certain that the message
 * belongs to this run.
 */
export class Follower implements Exchange {
	readonly run_id: string
	readonly #ctx: FollowerDeps
	readonly #runs: Runs
	readonly #listener: RunListener
	readonly #result = Promise.withResolvers<RunResult>()
	readonly result = this.#result.promise
	readonly #answer: AnswerStream
	/** Functions that `close` calls. */
	readonly #releases: (() => void)[]
	/** Events before `begin`; null after it. */
	#buffer: EventEnvelope[] | null = []
	#state: RunState = { status: 'queued', question: null }
	/** The question that the listener is answering. */
	#asking: RelayedQuestion | undefined
	/** The id of the question that this follower answered last. */
	#answered: string | undefined
	#watchesBelow = false
	#isOver = false

	constructor(ctx: FollowerDeps, runs: Runs, run_id: string, listener: RunListener) {
		this.#ctx = ctx
		this.#runs = runs
		this.run_id = run_id
		this.#listener = listener
		this.#answer = new AnswerStream(listener.text)
		this.#result.promise.catch(() => {}) // nothing awaits it after the caller has left
		const { signal } = listener
		signal?.addEventListener('abort', this.#leave, { once: true })
		this.#releases = [
			ctx.events.subscribe({ run_id }, ({ event }) => {
				if (this.#buffer) this.#buffer.push(event)
				else this.#handle(event)
			}),
			() => signal?.removeEventListener('abort', this.#leave),
		]
		if (signal?.aborted) this.#leave()
	}

	/**
	 * `record`: the run's record, read after the construction. `answered`: id of the question that the message answered. With
	 * neither, the run is new and all of its events are buffered.
	 */
	begin({ record, answered }: { record?: RunRecord; answered?: string | undefined } = {}): void {
		this.#answered = answered
		const buffered = this.#buffer ?? []
		this.#buffer = null
		if (this.#isOver) return
		if (record) this.#catchUp(record)
		for (const event of buffered) this.#handle(event)
		if (record || answered !== undefined) this.#watchBelow()
	}

	/** `release` is called when the run is no longer followed, which may be within this call. */
	own(release: () => void): void {
		if (this.#isOver) release()
		else this.#releases.push(release)
	}

	/** Resolves the result with the current text. */
	finish(end: Pick<RunResult, 'status'> & Partial<RunResult>): void {
		if (!this.close()) return
		const { text, isWhole, model, usage, finish_reason } = this.#answer
		this.#result.resolve({ text, isWhole, model, usage, finish_reason, error: null, ...end })
	}

	/** Stops following the run. False if that happened before. */
	close(): boolean {
		if (this.#isOver) return false
		this.#isOver = true
		this.#withdraw()
		for (const release of this.#releases) release()
		return true
	}

	readonly #leave = (): void => {
		if (!this.close()) return
		this.#result.reject(this.#listener.signal?.reason)
		// Before `begin` it is unknown whether the message belongs to this run.
		if (this.#listener.stopsRun && !this.#buffer) void this.#stop()
	}

	async #stop(): Promise<void> {
		try {
			await this.#runs.stop(this.run_id)
		} catch (error) {
			this.#ctx.log.error({ err: error, run_id: this.run_id }, 'the run of a caller that left could not be stopped')
		}
	}

	#catchUp(record: RunRecord): void {
		const result = resultIn(record)
		if (result) this.finish(result)
		else this.#apply(record)
	}

	#handle(event: EventEnvelope): void {
		if (this.#isOver) return
		this.#listener.event?.(event)
		const end = this.#answer.handle(event)
		if (this.#isBroken()) return
		if (end) return this.finish(end)
		this.#apply(stateAfter(this.#state, event))
		if (event.payload.waits_for !== undefined) this.#watchBelow()
	}

	/** Most runs never wait for a sub-agent, and watching reads the record. */
	#watchBelow(): void {
		if (this.#isOver || this.#watchesBelow) return
		this.#watchesBelow = true
		this.#releases.push(watchOpenQuestion(this.#ctx, this.run_id, (asked) => this.#hearBelow(asked)))
	}

	#apply(state: RunState): void {
		if (state === this.#state) return
		const [before, open] = [openQuestion(this.#state), openQuestion(state)]
		this.#state = state
		if (open) this.#ask({ ...open, run_id: this.run_id })
		else if (before) this.#withdraw()
	}

	#hearBelow(asked: OpenQuestion | null): void {
		if (this.#isOver) return
		if (asked) this.#ask(asked)
		else if (this.#asking?.asked.run_id !== this.run_id) this.#withdraw()
	}

	#ask(asked: OpenQuestion): void {
		const { question_id } = asked
		if (question_id === this.#answered || question_id === this.#asking?.asked.question_id) return
		this.#withdraw()
		const { ask } = this.#listener
		if (!ask) return this.#endWith(asked)
		const asking = { asked, withdrawn: new AbortController() }
		this.#asking = asking
		void this.#relay(asking, ask).catch((error: unknown) => {
			if (this.close()) this.#result.reject(error)
		})
	}

	async #relay(asking: RelayedQuestion, ask: NonNullable<RunListener['ask']>): Promise<void> {
		const { question_id, run_id } = asking.asked
		const answer = await ask(asking.asked, asking.withdrawn.signal, run_id !== this.run_id)
		if (this.#asking !== asking) return
		this.#asking = undefined
		if (answer === null) return this.#endWith(asking.asked)
		this.#answered = question_id
		const { agent: name, agent_uid: uid } = await this.#runs.get(this.run_id)
		try {
			await this.#runs.answer({ name, uid }, question_id, answer)
		} catch (error) {
			// The question was answered elsewhere or withdrawn: the run's events show what follows.
			if (!isNotOpen(error)) throw error
		}
	}

	/** The listener does not answer the question: the text ends with it. */
	#endWith(asked: OpenQuestion): void {
		this.#answer.ask(questionText(asked, this.run_id))
		if (!this.#isBroken()) this.finish({ status: 'asks', question: asked })
	}

	#withdraw(): void {
		this.#asking?.withdrawn.abort()
		this.#asking = undefined
	}

	#isBroken(): boolean {
		if (this.#answer.isWhole || !this.#listener.until?.includes('broken')) return false
		this.finish({ status: 'broken' })
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
