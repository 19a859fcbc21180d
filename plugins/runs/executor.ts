/**
 * From a claimed job to the run's end, or to its next pause.
 *
 * The run's log is the truth and its record follows from it: a step, or the end, is durable in the log before anything
 * is built on it. So whatever a crash leaves behind, reading the log tells where to go on.
 */
import { Fault, isFault, toWire } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import { now } from '../../core/ids.ts'
import { withLogFields } from '../../core/log-context.ts'
import type { LogFields } from '../../core/log-context.ts'
import type { Context, ToolDefinition } from '../../core/plugin.ts'
import { usageOf } from '../../core/protocol.ts'
import type {
	ModelOrder,
	NewEvent,
	RunOrder,
	RunOutcome,
	Step,
	ToolCallRequest,
	ToolReply,
} from '../../core/protocol.ts'
import type { JournalStep, RunLog } from '../../core/run-log.ts'
import { callTool, specOf } from '../../core/toolbox.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type {} from '../models/contract.ts'
import type {} from '../vault/contract.ts'
import { openAsks } from './asks.ts'
import type { Asks } from './asks.ts'
import type { Given, RunRecord, RunSettings } from './contract.ts'
import { contextFor } from './conversation.ts'
import { end, isOrphan, stopChildren } from './ending.ts'
import { charge } from './family.ts'
import { completedWith, endIn, eventsOfAnswer } from './journal.ts'
import { keys } from './keys.ts'
import { isEnded } from './records.ts'
import { withRun } from './turns.ts'
import type { Turn } from './turns.ts'
import { beginWait, pause, resume, waitIn } from './waits.ts'
import type { Work } from './waits.ts'

/** A step that brings the gateway, or its thread, down this often is not tried again. */
const RESTART_LIMIT = 3

/** A run that is taken up. */
interface Place extends Pick<Work, 'run' | 'log' | 'turn'> {
	ctx: Context<RunSettings>
}

interface Active extends Place, Work {
	ctx: Context<RunSettings>
	/** Time for which calls waited for a person: it is not active time. */
	waited_ms: number
}

/** Throws only where the log or store cannot be written. */
export function execute(ctx: Context<RunSettings>, uid: string, run_id: string): Promise<void> {
	return withRun(run_id, async (turn) => {
		for (;;) {
			const entry = await ctx.store.get<RunRecord>(keys.run(uid, run_id))
			if (!entry || entry.value.status === 'queued') return
			const run = entry.value
			if (isEnded(run.status)) return run.status === 'completed' ? undefined : stopChildren(ctx, run)
			const log = await ctx.events.openRun({ run_id, agent_id: run.agent })
			turn.writes(log)
			try {
				return await withLogFields(fieldsOf(run), () => executeOnce({ ctx, run, log, turn }))
			} catch (error) {
				// What can never be written will not be at the next try either, and each try asks the model again.
				if (isFault(error, 'payload_too_large', 'invalid_request')) return await giveUp(ctx, run, turn, toWire(error))
				// The thread died under it, perhaps because of another run: the journal has all that was done.
				if (!isFault(error, 'thread_lost') || ctx.gateway.state() === 'draining') throw error
				ctx.log.warn(fieldsOf(run), 'the thread of a run was lost; the run goes on from its journal')
			} finally {
				log.close()
			}
		}
	})
}

/** For the lines of the log that are about a run. */
function fieldsOf({ run_id, agent, request_id }: RunRecord): LogFields {
	return { run_id, agent, ...(request_id !== undefined && { request_id }) }
}

async function giveUp(ctx: Context<RunSettings>, run: RunRecord, turn: Turn, error: WireError): Promise<void> {
	const log = await ctx.events.openRun({ run_id: run.run_id, agent_id: run.agent })
	try {
		const usage = usageOf(log.journal.steps as JournalStep[])
		await finish({ ctx, run, log, turn }, { status: 'failed', error, usage })
	} finally {
		log.close()
	}
}

async function executeOnce(place: Place): Promise<void> {
	const { ctx, run, log } = place
	const journal = log.journal.steps as JournalStep[]
	const ended = endIn(log)
	if (ended) return end(ctx, run, ended, log.journal.lastEvent?.timestamp ?? now())

	const agent = await ctx.use('agents').find(run.agent)
	if (!agent || agent.uid !== run.agent_uid) return // deleted; whoever deletes it sweeps its runs
	if (await isOrphan(ctx.store, run)) return finish(place, { status: 'stopped' })

	const work: Active = { ...place, agent, journal, waited_ms: 0 }
	const began = Date.now()
	const taken = await takeUp(work)
	// Where it waits still, the gateway may have died before the record could follow.
	const outcome = taken === 'waits' ? { status: 'paused' as const } : taken === 'goes on' ? await think(work) : taken
	if (outcome.status !== 'paused') return finish(place, outcome)
	const wait = waitIn(journal)
	if (!wait) throw new Error(`run ${run.run_id} is paused and waits for nothing`)
	await charge(ctx.store, run, usageOf(journal))
	const active_ms = taken === 'waits' ? 0 : Date.now() - began - work.waited_ms
	await pause(work, wait, run.active_ms + active_ms)
}

/** Writes how the run begins, or goes on. Answers with how it ends where it must not. */
async function takeUp(work: Active): Promise<'goes on' | 'waits' | Final> {
	const { run, agent, log, journal } = work
	const { last, lastEvent } = log.journal
	if (last === 0 || lastEvent?.event_type === 'run.queued') {
		const { trigger, conversation, parent, request_id, traceparent } = run
		const payload = {
			trigger,
			conversation,
			...(parent && { parent_run_id: parent.run_id }),
			...(request_id !== undefined && { request_id }),
			...(traceparent !== undefined && { traceparent }),
		}
		const events: NewEvent[] = [{ event_type: 'run.started', payload }]
		const persona = run.persona ?? agent.persona
		if (persona) events.push({ event_type: 'message.system', payload: { content: persona } })
		events.push({ event_type: 'message.user', payload: { content: run.prompt } })
		watched(log.append(events))
		return 'goes on'
	}
	const wait = waitIn(journal)
	if (wait) return (await resume(work, wait)) ? 'goes on' : 'waits'
	const restarts = journal.length - (journal.findLastIndex((step) => step.kind === 'model' || step.kind === 'tool') + 1)
	if (journal.slice(journal.length - restarts).filter((step) => step.kind === 'restart').length >= RESTART_LIMIT) {
		const message = `the gateway or its thread ended ${RESTART_LIMIT} times in the same step of this run; it is not tried again`
		return { status: 'failed', error: { code: 'restart_loop', message }, usage: usageOf(journal) }
	}
	const restart: JournalStep = { kind: 'restart' }
	await log.append([{ event_type: 'run.resumed', payload: { reason: 'restart' } }], restart)
	return 'goes on'
}

/** Gives the run to a thread and answers what the thread asks. */
async function think(work: Active): Promise<RunOutcome> {
	const { ctx, run, agent, log, journal } = work
	const { signal } = work.turn
	let order: RunOrder
	try {
		order = await compose(work)
	} catch (error) {
		if (!(error instanceof Fault)) throw error
		return { status: 'failed', error: toWire(error), usage: usageOf(journal) }
	}
	if (signal.aborted) return { status: 'stopped' }
	const begun = new Set(journal.flatMap((step) => (step.kind === 'begun' ? [step.call_id] : [])))
	/** A call of a tool may outlast the run, such as one that its wall time cut off. */
	const over = new AbortController()
	let asks: Asks | undefined
	/** Calls of the latest answer, by the id that the worker knows. */
	let asWritten = new Map<string, ToolCallRequest>()
	const handle = ctx.pool.execute(order, {
		event(event) {
			if (event.event_type !== 'model.request') ctx.log.warn({ ...fieldsOf(run), ...event.payload }, event.event_type)
			watched(log.append([event]))
		},
		stream: (content) => log.live({ event_type: 'model.stream', payload: { content } }),
		async model({ answer }) {
			const step: JournalStep = { kind: 'model', answer }
			await log.append(eventsOfAnswer(answer), step)
			journal.push(step)
			const tokens_elsewhere = await charge(ctx.store, run, usageOf(journal))
			const told = await forModel(ctx, agent, log, answer)
			asWritten = new Map(told.tool_calls.map(({ id }, at) => [id, answer.tool_calls[at] as ToolCallRequest]))
			return { ...(tokens_elsewhere !== null && { tokens_elsewhere }), ...(told !== answer && { answer: told }) }
		},
		async tool({ call: asTold }): Promise<ToolReply> {
			// What the model wrote may hold a secret, which the tool gets and the model is not told again.
			const call = asWritten.get(asTold.id) ?? asTold
			const untilOver = AbortSignal.any([signal, over.signal])
			const asking = (asks = openAsks(work, call, untilOver, () => handle.hold()))
			const site = {
				run_id: run.run_id,
				agent,
				conversation: run.conversation,
				signal: untilOver,
				log,
				ask: asking.ask,
				asked: asking.close,
				forModel: (text: string, also: ReadonlySet<string>) => forModel(ctx, agent, log, text, also),
				interrupted: begun.has(call.id),
			}
			// Asked for now, not when the run began: a reload may have brought other tools.
			// What asks for it is a thread, in whose course this run is but one.
			const result = await withLogFields(fieldsOf(run), async () => callTool(await toolsOf(work), call, site, ctx.log))
			work.waited_ms += asking.waited_ms
			if (result.status === 'waits') return beginWait(work, call, result.wait)
			return asking.waited_ms > 0 ? { ...result, waited_ms: asking.waited_ms } : result
		},
	})
	const abort = (): void => void handle.abort(String(signal.reason))
	signal.addEventListener('abort', abort, { once: true })
	try {
		const outcome = await handle.outcome
		return signal.aborted ? { status: 'stopped' } : outcome
	} catch (error) {
		if (signal.aborted && isFault(error, 'thread_lost')) return { status: 'stopped' }
		throw error
	} finally {
		over.abort('the run is over')
		signal.removeEventListener('abort', abort)
		// Where the run goes on from its journal, it does not find itself paused by a question that nobody asks any more.
		await asks?.close()
	}
}

async function toolsOf({ ctx, run, agent }: Active): Promise<ToolDefinition[]> {
	return run.tools === 'none' ? [] : ctx.toolbox.list(agent)
}

async function compose(work: Active): Promise<RunOrder> {
	const { ctx, run, agent, log, journal } = work
	const { orders, instead_of } = await ctx.use('models').choose(agent.config)
	if (instead_of !== undefined && journal.length === 0) {
		const message = `no provider is set up in gateway.yaml, so the offline one answers instead of "${instead_of}"`
		watched(
			log.append([
				{
					event_type: 'model.fallback',
					payload: { from: instead_of, to: orders[0]?.provider, code: 'provider_unknown', message },
				},
			]),
		)
	}
	const limits = { ...ctx.config.limits, ...agent.config.limits }
	const given = run.given ? (await ctx.store.get<Given>(keys.given(run.agent_uid, run.run_id)))?.value : undefined
	const { since, tools: clients = [], one_call } = given ?? {}
	const [history, tools, elsewhere] = await Promise.all([
		given?.history ?? contextFor(ctx.store, run),
		toolsOf(work),
		charge(ctx.store, run, usageOf(journal)),
	])
	const told = await forModel(ctx, agent, log, {
		system: run.persona ?? agent.persona,
		history,
		prompt: run.prompt,
		...(since && { since }),
		tools: [...tools.map(specOf), ...clients],
		journal: journal.filter((step): step is Step => step.kind === 'model' || step.kind === 'tool'),
	})
	return {
		run_id: run.run_id,
		agent_id: run.agent,
		models: given?.model ? orders.map((order) => adjusted(order, given.model)) : orders,
		...told,
		...(clients.length > 0 && { client_tools: clients.map(({ name }) => name), one_call: one_call ?? false }),
		limits,
		remaining_ms: Math.max(0, limits.wall_time_s * 1000 - run.active_ms),
		...(elsewhere !== null && { tokens_elsewhere: elsewhere }),
	}
}

/** What the operator has bounded stays so. */
function adjusted(order: ModelOrder, { max_tokens, ...rest }: Given['model'] = {}): ModelOrder {
	const tokens = Math.min(max_tokens ?? Infinity, order.max_tokens ?? Infinity)
	return { ...order, ...rest, ...(tokens < Infinity && { max_tokens: tokens }) }
}

/** What the agent's model is told: without secrets, but those that a grant reveals to it, and those of `also`. */
async function forModel<T>(
	ctx: Context,
	agent: AgentRecord,
	log: RunLog,
	data: T,
	also: ReadonlySet<string> = new Set(),
): Promise<T> {
	if (!log.redactor.active) return data
	// Where the vault cannot say what is revealed, nothing is.
	const revealed = await ctx
		.find('vault')
		?.revealed(agent)
		.catch(() => undefined)
	return log.redactor.data(data, 'model', revealed?.union(also) ?? also)
}

type Final = Exclude<RunOutcome, { status: 'paused' }>

async function finish({ ctx, run, log, turn }: Place, outcome: Final): Promise<void> {
	const at = now()
	turn.settling()
	switch (outcome.status) {
		case 'completed': {
			const { answer, usage } = outcome
			const completed: NewEvent = { event_type: 'run.completed', payload: { usage } }
			await writeEnd(log, [...eventsOfAnswer(answer), completed], { kind: 'model', answer })
			await charge(ctx.store, run, usage)
			return end(ctx, run, { status: 'completed', ...completedWith(answer), usage }, at)
		}
		case 'failed': {
			const { error, usage } = outcome
			ctx.log.warn({ ...fieldsOf(run), code: error.code }, `a run failed: ${error.message}`)
			await writeEnd(log, [{ event_type: 'run.failed', payload: { error: error.message, code: error.code, usage } }])
			return end(ctx, run, { status: 'failed', error, usage }, at)
		}
		case 'stopped': {
			await writeEnd(log, [{ event_type: 'run.stopped', payload: {} }])
			return end(ctx, run, { status: 'stopped', usage: usageOf(log.journal.steps as JournalStep[]) }, at)
		}
	}
}

/** Nothing comes behind it, such as the result of a tool that did not hear of the stop. */
function writeEnd(log: RunLog, events: NewEvent[], step?: JournalStep): Promise<void> {
	const written = log.append(events, step)
	log.close()
	return written
}

/** For events that nobody waits for: where one cannot be written, the next append says so, and that one is awaited. */
function watched(appended: Promise<void>): void {
	appended.catch(() => {})
}
