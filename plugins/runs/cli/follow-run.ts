/** One run, followed to its end at the terminal. */
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli, StreamedEvent } from '../../../core/cli/contract.ts'
import { orNull } from '../../../core/cli/or-null.ts'
import { blockingRun, waitingNote } from './blocking-run.ts'
import type { BlockingRun } from './blocking-run.ts'
import type { Uploaded } from './files.ts'
import { askUser } from './run-question.ts'
import type { Asking, QuestionHooks } from './run-question.ts'
import type { Question, Run } from './run-record.ts'
import { runView } from './run-view.ts'
import type { RunView } from './run-view.ts'
import { isEnded, openQuestion, stateAfter } from '../run-state.ts'
import type { RunState } from '../run-state.ts'
import { shortId } from '../../../core/cli/short-ids.ts'

/** Time limit for starting a run. Ctrl-C does not interrupt the request, since stopping the run needs its id. */
const START_MS = 15_000
/** How long to wait for the last events of a run that ended while the connection was lost. */
const REPLAY_MS = 3_000

const endEvents = ['run.completed', 'run.failed', 'run.stopped']
/** After these events of other runs, a queued run may wait for something else. */
const changeEvents = new Set(['run.started', 'run.paused', 'run.resumed', 'question.asked', ...endEvents])

export interface FollowOptions extends QuestionHooks {
	/** Replaces the command's own signal: aborts on Ctrl-C. */
	signal?: AbortSignal
	/** Aborts when the user leaves: nothing more is shown, and the run continues. */
	leave?: AbortSignal
	/** How runs are shown, default `full`; `short`: only in commands to type, by the end of their id. */
	ids?: 'short' | 'full'
}

interface RunExtras {
	attachments?: readonly Uploaded[]
	/** Absent: the agent's current session. */
	conversation?: string | undefined
}

/** The body of POST /v1/agents/{name}/runs. */
export function runOf(prompt: string, { attachments = [], conversation }: RunExtras): object {
	if (attachments.length === 0) return { prompt, conversation }
	const files = attachments.map(({ blob, name }) => ({ blob, name }))
	return { prompt: prompt.trim() === '' ? undefined : prompt, attachments: files, conversation }
}

/** Starts a run and follows it to its end, as `Follower` describes. Ctrl-C stops it. */
export function startRun(cli: Cli, agent: string, prompt: string, options: FollowOptions & RunExtras): Promise<Run> {
	const start = async (): Promise<string> => {
		const until = { signal: AbortSignal.timeout(START_MS) }
		const { run_id } = await cli.api.request<Run>('POST', path`/v1/agents/${agent}/runs`, runOf(prompt, options), until)
		return run_id
	}
	return new Follower(cli, agent, options).follow({ start })
}

/** Follows an existing run; Ctrl-C does not stop it. */
export async function followRun(cli: Cli, run_id: string): Promise<Run> {
	const run = await readRun(cli, run_id)
	return new Follower(cli, run.agent).follow({ run_id })
}

export function readRun({ api }: Cli, run_id: string): Promise<Run> {
	return api.request<Run>('GET', path`/v1/runs/${run_id}`)
}

/** False if it had already ended. */
async function cancel({ api, out }: Cli, run_id: string, ids: FollowOptions['ids']): Promise<boolean> {
	const stopped = await orNull(api.request<Run>('POST', path`/v1/runs/${run_id}/cancel`), ['conflict'])
	if (stopped) out.note(out.style.dim(ids === 'short' ? '  (stopped)' : `  (stopped run ${run_id})`))
	return stopped !== null
}

/** An existing run, or how to start one, which Ctrl-C stops. */
type RunTarget = { run_id: string } | { start(): Promise<string> }

/**
 * Shows a run until its end: with `--json` its events, with `--quiet` the answer alone. Asks the agent's questions at the
 * prompt. Throws a CliError if the run failed or was stopped, and `interrupted` after Ctrl-C.
 */
class Follower {
	readonly #cli: Cli
	/** Aborts on Ctrl-C. */
	readonly #signal: AbortSignal
	readonly #options: FollowOptions
	readonly #agent: string
	readonly #over = new AbortController()
	/** Aborts when no more events are needed. */
	readonly #until: AbortSignal
	#view: RunView = noView
	#asking: Asking | undefined
	#state: RunState = { status: 'queued', question: null }
	/** The conversation in whose queue the run waits. */
	#queuedIn: string | undefined
	/** The run ahead of it in the queue, as last shown. */
	#ahead: BlockingRun | undefined
	/** Why the user's answer could not be read or sent. */
	#failure: unknown

	constructor(cli: Cli, agent: string, options: FollowOptions = {}) {
		this.#cli = cli
		this.#options = options
		this.#signal = options.signal ?? cli.signal
		this.#until = AbortSignal.any([this.#signal, this.#over.signal, ...(options.leave ? [options.leave] : [])])
		this.#agent = agent
	}

	async follow(target: RunTarget): Promise<Run> {
		const { api, out } = this.#cli
		if (!out.quiet && !out.json) this.#view = await runView(out)
		const open = Promise.withResolvers<void>()
		let run_id = 'run_id' in target ? target.run_id : undefined
		let lost = false
		// All of the agent's events: a run's events cannot be requested before it has an id, and sub-agents may ask questions.
		const stream = api.events(
			{ agent_id: this.#agent },
			{
				signal: this.#until,
				opened: () => {
					open.resolve()
					if (lost && run_id !== undefined) this.#catchUp(run_id, REPLAY_MS)
					lost = false
				},
				lost: () => {
					if (!lost) out.note(out.style.dim('  (the connection is lost; reconnecting)'))
					lost = true
				},
			},
		)
		const events = stream[Symbol.asyncIterator]()
		try {
			const first = events.next()
			await Promise.race([open.promise, first])
			first.catch(() => {}) // reported by #listen, unless the run cannot be started
			if (this.#signal.aborted) throw new CliError('interrupted', '')
			this.#view.wait()
			const own = 'start' in target ? await target.start() : target.run_id
			if (run_id !== undefined) this.#catchUp(own, 0)
			run_id = own
			await this.#listen(first, events, own)
		} finally {
			this.#over.abort()
			this.#view.rest()
			await events.return?.()
		}
		return await this.#conclude(run_id, target)
	}

	async #listen(
		first: Promise<IteratorResult<StreamedEvent>>,
		events: AsyncIterator<StreamedEvent>,
		run_id: string,
	): Promise<void> {
		for (let next = await first; next.done !== true; next = await events.next()) {
			const { event } = next.value
			if (event.run_id !== run_id) {
				this.#handleOther(event, run_id)
				continue
			}
			this.#handle(event, run_id)
			if (isEnded(this.#state.status)) return
		}
	}

	#handle(event: EventEnvelope, run_id: string): void {
		this.#cli.out.line(event)
		this.#view.show(event)
		this.#noteAnswer(event)
		const before = this.#state
		const state = stateAfter(before, event)
		if (state === before) return
		this.#state = state
		const question = openQuestion(state)
		if (state.status === 'queued') this.#queue(String(event.payload.conversation), run_id)
		else if (question) this.#ask(question, run_id)
		else if (state.waits_for) this.#catchUp(run_id, REPLAY_MS)
		else if (state.status !== before.status) this.#begin()
	}

	/** Shows which run it waits for in its conversation queue, and what that run waits for. */
	#queue(conversation: string, run_id: string): void {
		this.#queuedIn = conversation
		const showAhead = async (): Promise<void> => {
			const ahead = await blockingRun(this.#cli, this.#agent, conversation)
			const before = this.#ahead
			if (this.#queuedIn === undefined || ahead === undefined) return
			if (before?.run_id === ahead.run_id && before.question?.question_id === ahead.question?.question_id) return
			this.#ahead = ahead
			if (!ahead.question && before !== undefined) return // the user knows that a run is ahead
			const { out, ask } = this.#cli
			out.note(
				out.style.dim(`  (${waitingNote(this.#cli, this.#agent, { ...ahead, run_id: this.#id(ahead.run_id) })})`),
			)
			if (!ahead.question) return
			if (ask.canAsk && !out.json) this.#ask(ahead.question, ahead.question.run_id ?? run_id)
			else this.#options.stuck?.()
		}
		showAhead().catch(() => {}) // the connection is lost, and the check is repeated
	}

	/** The run has left the queue. */
	#begin(): void {
		this.#queuedIn = undefined
		this.#asking?.withdraw()
	}

	/** An event of another run of the agent: a sub-agent that this one waits for, or a run ahead of it. */
	#handleOther(event: EventEnvelope, run_id: string): void {
		this.#noteAnswer(event)
		if (this.#queuedIn !== undefined) {
			if (event.run_id === this.#ahead?.run_id && endEvents.includes(event.event_type)) this.#asking?.withdraw()
			if (changeEvents.has(event.event_type)) this.#queue(this.#queuedIn, run_id)
		}
		if (this.#state.waits_for && event.event_type === 'run.paused') this.#catchUp(run_id, REPLAY_MS)
	}

	#noteAnswer({ event_type, payload }: EventEnvelope): void {
		if (event_type === 'question.answered' && payload.question_id === this.#asking?.question_id)
			this.#asking?.withdraw(String(payload.answer))
	}

	#ask(question: Question, run_id: string): void {
		// After a lost connection, the event may arrive again.
		if (this.#asking?.question_id === question.question_id) return
		this.#view.rest()
		this.#asking = askUser(this.#cli, { agent: this.#agent, run_id, hooks: this.#options }, question, this.#until)
		this.#asking.done.catch((error: unknown) => {
			if (this.#until.aborted) return // no more questions
			this.#failure ??= error
			this.#over.abort()
		})
	}

	/** Reads the run's record, since events may be missing. Waits `graceMs` for the last events of a run that has ended. */
	#catchUp(run_id: string, graceMs: number): void {
		const checkRecord = async (): Promise<void> => {
			const run = await readRun(this.#cli, run_id)
			if (run.ended_at !== null) return void setTimeout(() => this.#over.abort(), graceMs).unref()
			this.#state = run
			if (run.status === 'queued') return this.#queue(run.conversation, run_id)
			if (this.#queuedIn !== undefined) this.#begin()
			if (run.open_question) this.#ask(run.open_question, run_id)
		}
		checkRecord().catch(() => {}) // the connection is lost again, and the check is repeated
	}

	#id(run_id: string): string {
		return this.#options.ids === 'short' ? shortId(run_id) : run_id
	}

	async #conclude(run_id = '', target: RunTarget): Promise<Run> {
		const { out } = this.#cli
		const broken = this.#failure instanceof CliError && this.#failure.exit === 'interrupted'
		this.#view.rest()
		if (this.#options.leave?.aborted) {
			const left = await readRun(this.#cli, run_id)
			if (left.ended_at === null)
				out.note(
					out.style.dim(
						`  (the run continues: svc runs follow ${this.#id(run_id)}, or svc runs cancel ${this.#id(run_id)})`,
					),
				)
			return left
		}
		if (this.#signal.aborted || broken) {
			const stopped = 'run_id' in target || (await cancel(this.#cli, run_id, this.#options.ids))
			if (stopped) throw new CliError('interrupted', '')
		} else if (this.#failure !== undefined) throw this.#failure
		const run = await readRun(this.#cli, run_id)
		this.#view.finish(run.answer)
		if (out.quiet && run.answer) out.write(`${run.answer}\n`)
		const { status, error, usage } = run
		if (status === 'stopped') throw new CliError('failed', 'the run was stopped', { code: 'stopped' })
		if (error) {
			const advice = modelServerErrors.has(error.code)
				? "\nTo find the cause, run on the gateway's machine: svc doctor --only provider"
				: ''
			throw new CliError('failed', `the run failed: ${error.message} (${error.code})${advice}`, { code: error.code })
		}
		const named = this.#options.ids === 'short' ? '' : `; run ${run_id}`
		out.note(out.style.dim(`  (${usage.input_tokens} tokens in, ${usage.output_tokens} out${named})`))
		return run
	}
}

/** Errors whose cause `svc doctor` can often find: a wrong address, key or model. */
const modelServerErrors = new Set(['model_rejected', 'model_unavailable'])

const noView: RunView = { wait() {}, show() {}, rest() {}, finish() {} }
