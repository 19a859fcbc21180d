/** One run, followed to its end at the terminal. */
import type { EventEnvelope } from '../store/ports.ts'
import { CliError, path } from './contract.ts'
import type { Cli, StreamedEvent } from './contract.ts'
import { inCommands } from './in-commands.ts'
import { runAhead, waitingNote } from './run-ahead.ts'
import type { Ahead } from './run-ahead.ts'
import { askUser } from './run-question.ts'
import type { Asking, Question, QuestionHooks } from './run-question.ts'
import { runView } from './run-view.ts'
import type { RunView } from './run-view.ts'

export interface Run {
	run_id: string
	agent: string
	status: 'queued' | 'started' | 'paused' | 'completed' | 'failed' | 'stopped'
	trigger: string
	conversation: string
	prompt: string
	answer: string | null
	created_at: string
	started_at: string | null
	ended_at: string | null
	usage: { input_tokens: number; output_tokens: number }
	error: { code: string; message: string } | null
	question: Question | null
	/** Its own question, or that of a sub-agent that it waits for. */
	open_question: Question | null
	waits_for: string | null
	parent_run_id: string | null
}

/** To start a run; Ctrl-C does not cut that off, since only who knows the run's id can stop it. */
const START_MS = 15_000
/** Where a run has ended while the connection was lost, its last events come at once or not at all. */
const REPLAY_MS = 3_000

const ends = ['run.completed', 'run.failed', 'run.stopped']
/** After which a run that waits for its turn may wait for something else. */
const turns = new Set(['run.started', 'run.paused', 'run.resumed', 'question.asked', ...ends])

export interface FollowOptions extends QuestionHooks {
	/** In place of the command's own: aborts with Ctrl-C. */
	signal?: AbortSignal
	/** Aborts where the user turns away: nothing more is shown, and the run goes on. */
	leave?: AbortSignal
}

/** Starts a run and follows it to its end, as `Follower` says. Ctrl-C stops it. */
export function startRun(cli: Cli, agent: string, prompt: string, options: FollowOptions = {}): Promise<Run> {
	const start = async (): Promise<string> => {
		const until = { signal: AbortSignal.timeout(START_MS) }
		const { run_id } = await cli.api.request<Run>('POST', path`/v1/agents/${agent}/runs`, { prompt }, until)
		return run_id
	}
	const stop = (run_id: string): Promise<boolean> => cancel(cli, run_id)
	return new Follower(cli, agent, options).follow({ start, stop })
}

/** Follows a run that there is; Ctrl-C leaves it alone. */
export async function followRun(cli: Cli, run_id: string): Promise<Run> {
	const run = await readRun(cli, run_id)
	return new Follower(cli, run.agent).follow({ run_id })
}

export function readRun({ api }: Cli, run_id: string): Promise<Run> {
	return api.request<Run>('GET', path`/v1/runs/${run_id}`)
}

/** False where it had ended already. */
async function cancel({ api, out }: Cli, run_id: string): Promise<boolean> {
	try {
		await api.request('POST', path`/v1/runs/${run_id}/cancel`)
		out.note(out.style.dim(`  (stopped run ${run_id})`))
		return true
	} catch (error) {
		if (error instanceof CliError && error.exit === 'conflict') return false
		throw error
	}
}

/** A run that there is, or how to start one, and to stop it where Ctrl-C does that. */
type Target = { run_id: string } | { start(): Promise<string>; stop(run_id: string): Promise<boolean> }

/**
 * Shows a run until its end: with `--json` its events, with `--quiet` the answer alone. What the agent asks is asked at the
 * prompt. Throws a CliError where the run failed or was stopped, and `interrupted` after Ctrl-C.
 */
class Follower {
	readonly #cli: Cli
	/** Aborts with Ctrl-C. */
	readonly #signal: AbortSignal
	readonly #options: FollowOptions
	readonly #agent: string
	/** Nothing more is to be heard. */
	readonly #over = new AbortController()
	readonly #view: RunView
	#asking: Asking | undefined
	/** It is paused until another run has ended. */
	#waits = false
	/** The conversation in which it waits for its turn. */
	#queuedIn: string | undefined
	/** The run that is in front of it, as it was told last. */
	#ahead: Ahead | undefined
	/** Why the user's answer could not be had. */
	#failure: unknown

	constructor(cli: Cli, agent: string, options: FollowOptions = {}) {
		this.#cli = cli
		this.#options = options
		this.#signal = options.signal ?? cli.signal
		this.#agent = agent
		this.#view = cli.out.quiet || cli.out.json ? noView : runView(cli.out)
	}

	async follow(target: Target): Promise<Run> {
		const { api, out } = this.#cli
		const leave = (): void => this.#over.abort()
		this.#options.leave?.addEventListener('abort', leave)
		const open = Promise.withResolvers<void>()
		let run_id = 'run_id' in target ? target.run_id : undefined
		let lost = false
		// All of the agent's events: those of a run cannot be asked for before it has an id, and a sub-agent may ask something.
		const stream = api.events(
			{ agent_id: this.#agent },
			{
				signal: AbortSignal.any([this.#signal, this.#over.signal]),
				opened: () => {
					open.resolve()
					if (lost && run_id !== undefined) this.#catchUp(run_id, REPLAY_MS)
					lost = false
				},
				lost: () => {
					if (!lost) out.note(out.style.dim('  (the connection is lost; trying again)'))
					lost = true
				},
			},
		)
		const events = stream[Symbol.asyncIterator]()
		try {
			const first = events.next()
			await Promise.race([open.promise, first])
			first.catch(() => {}) // told by #listen, unless the run cannot be started
			if (this.#signal.aborted) throw new CliError('interrupted', '')
			const own = 'start' in target ? await target.start() : target.run_id
			if (run_id !== undefined) this.#catchUp(own, 0)
			run_id = own
			await this.#listen(first, events, own)
		} finally {
			this.#over.abort()
			this.#options.leave?.removeEventListener('abort', leave)
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
				this.#hearBelow(event, run_id)
				continue
			}
			this.#hear(event, run_id)
			if (ends.includes(event.event_type)) return
		}
	}

	#hear(event: EventEnvelope, run_id: string): void {
		const { event_type, payload } = event
		this.#cli.out.line(event)
		this.#view.show(event)
		if (event_type === 'question.asked') this.#ask(payload as unknown as Question, run_id)
		this.#heedAnswer(event)
		if (event_type === 'run.queued') this.#queue(String(payload.conversation), run_id)
		else if (event_type === 'run.started') this.#begin()
		else if (event_type === 'run.paused') {
			this.#waits = payload.waits_for !== undefined
			if (this.#waits) this.#catchUp(run_id, REPLAY_MS)
		} else if (event_type === 'run.resumed' || ends.includes(event_type)) {
			this.#waits = false
			this.#begin()
		}
	}

	/** It waits for its turn: for which run, and what that waits for. */
	#queue(conversation: string, run_id: string): void {
		this.#queuedIn = conversation
		const look = async (): Promise<void> => {
			const ahead = await runAhead(this.#cli, this.#agent, conversation)
			const before = this.#ahead
			if (this.#queuedIn === undefined || ahead === undefined) return
			if (before?.run_id === ahead.run_id && before.question?.question_id === ahead.question?.question_id) return
			this.#ahead = ahead
			if (!ahead.question && before !== undefined) return // it has been told that something is in front
			const { out, ask } = this.#cli
			out.note(out.style.dim(`  (${waitingNote(this.#cli, this.#agent, ahead)})`))
			if (!ahead.question) return
			if (ask.canAsk && !out.json) this.#ask(ahead.question, ahead.question.run_id ?? run_id)
			else this.#options.stuck?.()
		}
		look().catch(() => {}) // the connection is lost, and this will be done again
	}

	/** Its turn has come, or never will. */
	#begin(): void {
		this.#queuedIn = undefined
		this.#asking?.withdraw()
	}

	/** Of another run of the agent: a sub-agent that this one waits for, or a run in front of it. */
	#hearBelow(event: EventEnvelope, run_id: string): void {
		this.#heedAnswer(event)
		if (this.#queuedIn !== undefined) {
			if (event.run_id === this.#ahead?.run_id && ends.includes(event.event_type)) this.#asking?.withdraw()
			if (turns.has(event.event_type)) this.#queue(this.#queuedIn, run_id)
		}
		if (this.#waits && event.event_type === 'run.paused') this.#catchUp(run_id, REPLAY_MS)
	}

	#heedAnswer({ event_type, payload }: EventEnvelope): void {
		if (event_type === 'question.answered' && payload.question_id === this.#asking?.question_id)
			this.#asking?.withdraw(String(payload.answer))
	}

	#ask(question: Question, run_id: string): void {
		// After a lost connection it is told twice.
		if (this.#asking?.question_id === question.question_id) return
		this.#view.rest()
		const until = AbortSignal.any([this.#signal, this.#over.signal])
		this.#asking = askUser(this.#cli, { agent: this.#agent, run_id, hooks: this.#options }, question, until)
		this.#asking.done.catch((error: unknown) => {
			if (this.#over.signal.aborted) return // nobody is to be asked any more
			this.#failure ??= error
			this.#over.abort()
		})
	}

	/** Looks at the run itself where events may have been missed. For the last ones of a run that has ended: `patience` ms. */
	#catchUp(run_id: string, patience: number): void {
		const look = async (): Promise<void> => {
			const run = await readRun(this.#cli, run_id)
			if (run.ended_at !== null) return void setTimeout(() => this.#over.abort(), patience).unref()
			if (run.status === 'queued') return this.#queue(run.conversation, run_id)
			if (this.#queuedIn !== undefined) this.#begin()
			this.#waits = run.waits_for !== null
			if (run.open_question) this.#ask(run.open_question, run_id)
		}
		look().catch(() => {}) // the connection is lost again, and this will be done again
	}

	async #conclude(run_id = '', target: Target): Promise<Run> {
		const { out } = this.#cli
		const broken = this.#failure instanceof CliError && this.#failure.exit === 'interrupted'
		this.#view.rest()
		if (this.#options.leave?.aborted) {
			const left = await readRun(this.#cli, run_id)
			if (left.ended_at === null)
				out.note(out.style.dim(`  (the run goes on: svc runs follow ${run_id}, or svc runs cancel ${run_id})`))
			return left
		}
		if (this.#signal.aborted || broken) {
			const stopped = 'stop' in target ? await target.stop(run_id) : true
			if (stopped) throw new CliError('interrupted', '')
		} else if (this.#failure !== undefined) throw this.#failure
		const run = await readRun(this.#cli, run_id)
		this.#view.finish(run.answer)
		if (out.quiet && run.answer) out.write(`${run.answer}\n`)
		const { status, error, usage } = run
		if (status === 'stopped') throw new CliError('failed', 'the run was stopped', { code: 'stopped' })
		if (error)
			throw new CliError('failed', `the run failed: ${inCommands(error.message)} (${error.code})`, { code: error.code })
		out.note(out.style.dim(`  (${usage.input_tokens} tokens in, ${usage.output_tokens} out; run ${run_id})`))
		return run
	}
}

const noView: RunView = { show() {}, rest() {}, finish() {} }
