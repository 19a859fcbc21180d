/** One run, followed to its end at the terminal. */
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
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

/** Starts a run and follows it to its end, as `show` describes. Ctrl-C stops it. */
export function startRun(cli: Cli, agent: string, prompt: string, options: FollowOptions & RunExtras): Promise<Run> {
	const start = async (): Promise<string> => {
		const until = { signal: AbortSignal.timeout(START_MS) }
		const { run_id } = await cli.api.request<Run>('POST', path`/v1/agents/${agent}/runs`, runOf(prompt, options), until)
		return run_id
	}
	return show(cli, agent, { start }, options)
}

/** Follows an existing run; Ctrl-C does not stop it. */
export async function followRun(cli: Cli, run_id: string): Promise<Run> {
	const run = await readRun(cli, run_id)
	return show(cli, run.agent, { run_id })
}

export function readRun({ api }: Cli, run_id: string): Promise<Run> {
	return api.request<Run>('GET', path`/v1/runs/${run_id}`)
}

/** An existing run, or how to start one, which Ctrl-C stops. */
type RunTarget = { run_id: string } | { start(): Promise<string> }

/**
 * Shows a run until its end: with `--json` its events, with `--quiet` the answer alone. Asks the agent's questions at the
 * prompt. Throws a CliError if the run failed or was stopped, and `interrupted` after Ctrl-C.
 */
async function show(cli: Cli, agent: string, target: RunTarget, options: FollowOptions = {}): Promise<Run> {
	const { api, out } = cli
	/** Aborts on Ctrl-C. */
	const signal = options.signal ?? cli.signal
	const over = new AbortController()
	/** Aborts when no more events are needed. */
	const until = AbortSignal.any([signal, over.signal, ...(options.leave ? [options.leave] : [])])
	const view = out.quiet || out.json ? noView : await runView(out)
	let run_id = 'run_id' in target ? target.run_id : ''
	let state: RunState = { status: 'queued', question: null }
	let asking: Asking | undefined
	/** The conversation in whose queue the run waits. */
	let queuedIn: string | undefined
	/** The run ahead of it in the queue, as last shown. */
	let ahead: BlockingRun | undefined
	/** Why the user's answer could not be read or sent. */
	let failure: unknown

	await listen()
	return await conclude()

	async function listen(): Promise<void> {
		const open = Promise.withResolvers<void>()
		let isLost = false
		// All of the agent's events: a run's events cannot be requested before it has an id, and sub-agents may ask questions.
		const stream = api.events(
			{ agent_id: agent },
			{
				signal: until,
				opened: () => {
					open.resolve()
					if (isLost && run_id !== '') catchUp(REPLAY_MS)
					isLost = false
				},
				lost: () => {
					if (!isLost) out.note(out.style.dim('  (the connection is lost; reconnecting)'))
					isLost = true
				},
			},
		)
		const events = stream[Symbol.asyncIterator]()
		try {
			const first = events.next()
			await Promise.race([open.promise, first])
			first.catch(() => {}) // reported below, unless the run cannot be started
			if (signal.aborted) throw new CliError('interrupted', '')
			view.wait()
			if ('start' in target) run_id = await target.start()
			else catchUp(0)
			for (let next = await first; next.done !== true; next = await events.next()) {
				const { event } = next.value
				if (event.run_id !== run_id) handleOther(event)
				else handle(event)
				if (isEnded(state.status)) return
			}
		} finally {
			over.abort()
			view.rest()
			await events.return?.()
		}
	}

	function handle(event: EventEnvelope): void {
		out.line(event)
		view.show(event)
		noteAnswer(event)
		const before = state
		state = stateAfter(before, event)
		if (state === before) return
		const question = openQuestion(state)
		if (state.status === 'queued') queue(String(event.payload.conversation))
		else if (question) ask(question, run_id)
		else if (state.waits_for) catchUp(REPLAY_MS)
		else if (state.status !== before.status) begin()
	}

	/** Shows which run it waits for in its conversation queue, and what that run waits for. */
	function queue(conversation: string): void {
		queuedIn = conversation
		const showAhead = async (): Promise<void> => {
			const found = await blockingRun(cli, agent, conversation)
			const before = ahead
			if (queuedIn === undefined || found === undefined) return
			if (before?.run_id === found.run_id && before.question?.question_id === found.question?.question_id) return
			ahead = found
			const { question } = found
			if (!question && before !== undefined) return // the user knows that a run is ahead
			out.note(out.style.dim(`  (${waitingNote(cli, agent, { question, run_id: shownId(found.run_id) })})`))
			if (!question) return
			if (cli.ask.canAsk && !out.json) ask(question, question.run_id ?? run_id)
			else options.stuck?.()
		}
		showAhead().catch(() => {}) // the connection is lost, and the check is repeated
	}

	/** The run has left the queue. */
	function begin(): void {
		queuedIn = undefined
		asking?.withdraw()
	}

	/** An event of another run of the agent: a sub-agent that this one waits for, or a run ahead of it. */
	function handleOther(event: EventEnvelope): void {
		noteAnswer(event)
		if (queuedIn !== undefined) {
			if (event.run_id === ahead?.run_id && endEvents.includes(event.event_type)) asking?.withdraw()
			if (changeEvents.has(event.event_type)) queue(queuedIn)
		}
		if (state.waits_for && event.event_type === 'run.paused') catchUp(REPLAY_MS)
	}

	function noteAnswer({ event_type, payload }: EventEnvelope): void {
		if (event_type === 'question.answered' && payload.question_id === asking?.question_id)
			asking?.withdraw(String(payload.answer))
	}

	/** `asker`: the question of any other run is that of a sub-agent. */
	function ask(question: Question, asker: string): void {
		// After a lost connection, the event may arrive again.
		if (asking?.question_id === question.question_id) return
		view.rest()
		asking = askUser(cli, { agent, run_id: asker, hooks: options }, question, until)
		asking.done.catch((error: unknown) => {
			if (until.aborted) return // no more questions
			failure ??= error
			over.abort()
		})
	}

	/** Reads the run's record, since events may be missing. Waits `graceMs` for the last events of a run that has ended. */
	function catchUp(graceMs: number): void {
		const checkRecord = async (): Promise<void> => {
			const run = await readRun(cli, run_id)
			if (run.ended_at !== null) return void setTimeout(() => over.abort(), graceMs).unref()
			state = run
			if (run.status === 'queued') return queue(run.conversation)
			if (queuedIn !== undefined) begin()
			if (run.open_question) ask(run.open_question, run_id)
		}
		checkRecord().catch(() => {}) // the connection is lost again, and the check is repeated
	}

	function shownId(id: string): string {
		return options.ids === 'short' ? shortId(id) : id
	}

	async function conclude(): Promise<Run> {
		const isBroken = failure instanceof CliError && failure.exit === 'interrupted'
		view.rest()
		if (options.leave?.aborted) {
			const left = await readRun(cli, run_id)
			const id = shownId(run_id)
			if (left.ended_at === null)
				out.note(out.style.dim(`  (the run continues: svc runs follow ${id}, or svc runs cancel ${id})`))
			return left
		}
		if (signal.aborted || isBroken) {
			if ('run_id' in target) throw new CliError('interrupted', '')
			// Null if it had already ended.
			const stopped = await orNull(api.request<Run>('POST', path`/v1/runs/${run_id}/cancel`), ['conflict'])
			if (stopped) {
				out.note(out.style.dim(options.ids === 'short' ? '  (stopped)' : `  (stopped run ${run_id})`))
				throw new CliError('interrupted', '')
			}
		} else if (failure !== undefined) throw failure
		const run = await readRun(cli, run_id)
		view.finish(run.answer)
		if (out.quiet && run.answer) out.write(`${run.answer}\n`)
		const { status, error, usage } = run
		if (status === 'stopped') throw new CliError('failed', 'the run was stopped', { code: 'stopped' })
		if (error) {
			const advice = modelServerErrors.has(error.code)
				? "\nTo find the cause, run on the gateway's machine: svc doctor --only provider"
				: ''
			throw new CliError('failed', `the run failed: ${error.message} (${error.code})${advice}`, { code: error.code })
		}
		const named = options.ids === 'short' ? '' : `; run ${run_id}`
		out.note(out.style.dim(`  (${usage.input_tokens} tokens in, ${usage.output_tokens} out${named})`))
		return run
	}
}

/** Errors whose cause `svc doctor` can often find: a wrong address, key or model. */
const modelServerErrors = new Set(['model_rejected', 'model_unavailable'])

const noView: RunView = { wait() {}, show() {}, rest() {}, finish() {} }
