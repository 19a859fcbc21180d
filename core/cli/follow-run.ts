/** One run, followed to its end at the terminal. */
import type { EventEnvelope } from '../store/ports.ts'
import { CliError, path } from './contract.ts'
import type { Cli, StreamedEvent } from './contract.ts'
import { askUser } from './run-question.ts'
import type { Asking, Question } from './run-question.ts'
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
	waits_for: string | null
	parent_run_id: string | null
}

/** To start a run; Ctrl-C does not cut that off, since only who knows the run's id can stop it. */
const START_MS = 15_000
/** Where a run has ended while the connection was lost, its last events come at once or not at all. */
const REPLAY_MS = 3_000

const ends = ['run.completed', 'run.failed', 'run.stopped']

/** Starts a run and follows it to its end, as `Follower` says. Ctrl-C stops it. */
export function startRun(cli: Cli, agent: string, prompt: string, signal = cli.signal): Promise<Run> {
	const start = async (): Promise<string> => {
		const until = { signal: AbortSignal.timeout(START_MS) }
		const { run_id } = await cli.api.request<Run>('POST', path`/v1/agents/${agent}/runs`, { prompt }, until)
		return run_id
	}
	const stop = (run_id: string): Promise<boolean> => cancel(cli, run_id)
	// All of the agent's events: those of the run cannot be asked for before it has an id, and the first would be missed.
	return new Follower(cli, signal, agent).follow({ agent_id: agent }, { start, stop })
}

/** Follows a run that there is; Ctrl-C leaves it alone. */
export async function followRun(cli: Cli, run_id: string): Promise<Run> {
	const run = await readRun(cli, run_id)
	return new Follower(cli, cli.signal, run.agent).follow({ run_id }, { run_id })
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
	readonly #agent: string
	/** Nothing more is to be heard. */
	readonly #over = new AbortController()
	readonly #view: RunView
	#asking: Asking | undefined
	/** Why the user's answer could not be had. */
	#failure: unknown

	constructor(cli: Cli, signal: AbortSignal, agent: string) {
		this.#cli = cli
		this.#signal = signal
		this.#agent = agent
		this.#view = cli.out.quiet || cli.out.json ? noView : runView(cli.out)
	}

	async follow(query: Record<string, string>, target: Target): Promise<Run> {
		const { api, out } = this.#cli
		const open = Promise.withResolvers<void>()
		let run_id = 'run_id' in target ? target.run_id : undefined
		let lost = false
		const stream = api.events(query, {
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
		})
		const events = stream[Symbol.asyncIterator]()
		try {
			const first = events.next()
			await Promise.race([open.promise, first])
			first.catch(() => {}) // told by #listen, unless the run cannot be started
			if (this.#signal.aborted) throw new CliError('interrupted', '')
			if ('start' in target) run_id = await target.start()
			else this.#catchUp(target.run_id, 0)
			await this.#listen(first, events, run_id)
		} finally {
			this.#over.abort()
			await events.return?.()
		}
		return await this.#conclude(run_id, target)
	}

	async #listen(
		first: Promise<IteratorResult<StreamedEvent>>,
		events: AsyncIterator<StreamedEvent>,
		run_id: string | undefined,
	): Promise<void> {
		for (let next = await first; next.done !== true; next = await events.next()) {
			const { event } = next.value
			if (event.run_id !== run_id) continue
			this.#hear(event)
			if (ends.includes(event.event_type)) return
		}
	}

	#hear(event: EventEnvelope): void {
		const { event_type, payload } = event
		this.#cli.out.line(event)
		this.#view.show(event)
		if (event_type === 'question.asked') this.#ask(payload as unknown as Question)
		if (event_type === 'question.answered' && payload.question_id === this.#asking?.question_id)
			this.#asking?.withdraw(String(payload.answer))
	}

	#ask(question: Question): void {
		// After a lost connection it is told twice.
		if (this.#asking?.question_id === question.question_id) return
		this.#view.rest()
		this.#asking = askUser(this.#cli, this.#agent, question, this.#signal)
		this.#asking.done.catch((error: unknown) => {
			this.#failure ??= error
			this.#over.abort()
		})
	}

	/** Looks at the run itself where events may have been missed. For the last ones of a run that has ended: `patience` ms. */
	#catchUp(run_id: string, patience: number): void {
		const look = async (): Promise<void> => {
			const run = await readRun(this.#cli, run_id)
			if (run.ended_at !== null) setTimeout(() => this.#over.abort(), patience).unref()
			else if (run.question) this.#ask(run.question)
		}
		look().catch(() => {}) // the connection is lost again, and this will be done again
	}

	async #conclude(run_id = '', target: Target): Promise<Run> {
		const { out } = this.#cli
		const broken = this.#failure instanceof CliError && this.#failure.exit === 'interrupted'
		this.#view.rest()
		if (this.#signal.aborted || broken) {
			const stopped = 'stop' in target ? await target.stop(run_id) : true
			if (stopped) throw new CliError('interrupted', '')
		} else if (this.#failure !== undefined) throw this.#failure
		const run = await readRun(this.#cli, run_id)
		this.#view.finish(run.answer)
		if (out.quiet && run.answer) out.write(`${run.answer}\n`)
		const { status, error, usage } = run
		if (status === 'stopped') throw new CliError('failed', 'the run was stopped', { code: 'stopped' })
		if (error) throw new CliError('failed', `the run failed: ${error.message} (${error.code})`, { code: error.code })
		out.note(out.style.dim(`  (${usage.input_tokens} tokens in, ${usage.output_tokens} out; run ${run_id})`))
		return run
	}
}

const noView: RunView = { show() {}, rest() {}, finish() {} }
