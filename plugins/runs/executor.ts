/**
 * From a claimed job to the run's end, or to its next pause.
 *
 * The run's log is the truth: a step is durable in the log before anything depends on it, and a pause or the end changes
 * the record in the same transaction. So after a crash, the log shows where to continue.
 */
import { Fault, isFault, toWire } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import { withLogFields } from '../../core/util/context.ts'
import type { LogFields } from '../../core/util/context.ts'
import type { Context, ToolDefinition, ToolFile } from '../../core/plugin.ts'
import { usageOf } from '../../core/protocol.ts'
import { isTextType } from '../../sandbox/text-type.ts'
import type {
	ModelAnswer,
	ModelUsage,
	NewEvent,
	RunOrder,
	RunOutcome,
	SentRequest,
	ToolCallRequest,
	ToolReply,
} from '../../core/protocol.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import type { JournalStep } from './journal-step.ts'
import { DEPARTED } from '../../core/runs/worker-threads.ts'
import type { Op } from '../../core/store/ports.ts'
import { modelKey } from '../../sandbox/context/budget.ts'
import { NO_MARKS } from '../../sandbox/context/earlier.ts'
import type {} from '../attachments/contract.ts'
import type {} from '../models/contract.ts'
import type {} from '../vault/contract.ts'
import { openAsks } from './asks.ts'
import type { Asks } from './asks.ts'
import { isAtBeginning, takeAbout, takeBegun, writeBeginning } from './begin.ts'
import type { Begun } from './begin.ts'
import type { RunInputs, RunRecord, RunSettings } from './contract.ts'
import { composeContext, contextWith, learnFactor, learnLimit } from './context.ts'
import { end, isOrphan, openLog, stopChildren } from './ending.ts'
import { charge, chargeOps } from './family.ts'
import { storeFiles } from './tool-files.ts'
import type { RunEnd } from '../usage/contract.ts'
import { completedWith, eventsOfAnswer, withShortReasoning } from './journal.ts'
import { keys } from './keys.ts'
import { aboutRun, systemFor } from './preamble.ts'
import { appendWith } from './records.ts'
import { isEnded } from './standing.ts'
import { requestKeeper } from './requests.ts'
import { isOffered } from './send-file.ts'
import { unreadableStep } from './step-versions.ts'
import { withRun } from './run-lock.ts'
import type { RunLock } from './run-lock.ts'
import { callTool } from './tool-call.ts'
import { isConcurrent, specOf } from './tool-specs.ts'
import { toolsReady, whyMissing } from './tools-ready.ts'
import { transcribe } from './transcribe.ts'
import { offeredTo, policyOf } from './call-policy.ts'
import {
	askApproval,
	beginWait,
	hasApproved,
	hasUnfinishedBefore,
	pauseAgain,
	resume,
	showPaused,
	waitsIn,
} from './waits.ts'
import type { Work } from './work.ts'

/** A step that is still unfinished after this many restarts is not retried. */
const RESTART_LIMIT = 3

/** A run that is being executed. */
type LoggedRun = Pick<Work, 'ctx' | 'run' | 'log'>

interface Active extends Work {
	/** Keeps a request that was sent. Absent if none is kept. */
	keep?: ((request: SentRequest) => void) | undefined
	/** Milliseconds that calls waited for a person: not active time. */
	waited_ms: number
	/** The run executes while its beginning is being written. If that is refused, nothing of the run may remain. */
	begun?: Begun
	/** As in the journal, once that is written. */
	about?: string | undefined
	/** Nobody has executed it before, as far as its job shows. */
	isFirst?: boolean
}

/** `attempt`: of its job, from 1. Throws only if the log or store cannot be written. */
export function execute(ctx: Context<RunSettings>, uid: string, run_id: string, attempt: number): Promise<void> {
	return withRun(run_id, async (lock) => {
		const begun = takeBegun(run_id)
		if (begun && (await executeBegun(ctx, lock, begun))) return
		for (let isFirst = !begun && attempt === 1; ; isFirst = false) {
			const entry = await ctx.store.get<RunRecord>(keys.run(uid, run_id))
			if (!entry || entry.value.status === 'queued') return
			const run = entry.value
			if (isEnded(run.status)) return run.status === 'completed' ? undefined : stopChildren(ctx, run)
			const log = await openLog(ctx, run)
			if (!log) return
			lock.writes(log)
			try {
				return await inContext(run, () => executeOnce({ ctx, run, log, lock, isFirst }))
			} catch (error) {
				if (await handle(ctx, run, error)) return
			} finally {
				log.close()
			}
		}
	})
}

/** Executes a run that has just begun. False if it continues from its journal. */
async function executeBegun(ctx: Context<RunSettings>, lock: RunLock, begun: Begun): Promise<boolean> {
	const { run, log, about, isWritten } = begun
	lock.writes(log)
	try {
		await inContext(run, () => executeOnce({ ctx, run, log, lock, begun, about }))
		return true
	} catch (error) {
		return !(await isWritten) || (await handle(ctx, run, error))
	} finally {
		log.close()
	}
}

/** What the execution threw. False if the run continues from its journal. */
async function handle(ctx: Context<RunSettings>, run: RunRecord, error: unknown): Promise<boolean> {
	// A write that can never succeed fails at each retry, too, and each retry calls the model again.
	if (isFault(error, 'payload_too_large', 'invalid_request')) {
		await giveUp(ctx, run, toWire(error))
		return true
	}
	// Its thread died, perhaps because of another run: the journal has all that was done.
	if (!isFault(error, 'thread_lost') || ctx.gateway.state() === 'draining') throw error
	ctx.log.warn(fieldsOf(run), 'the thread of a run was lost; the run continues from its journal')
	return false
}

/** For log lines about a run. */
function fieldsOf({ run_id, agent, request_id }: RunRecord): LogFields {
	return { run_id, agent, ...(request_id !== undefined && { request_id }) }
}

/** Lines of the log are about the run, and events that it causes elsewhere name its agent. */
function inContext<T>(run: RunRecord, work: () => Promise<T>): Promise<T> {
	return withLogFields(fieldsOf(run), work, { actor: { kind: 'agent', id: run.agent }, payer: run.payer })
}

async function giveUp(ctx: Context<RunSettings>, run: RunRecord, error: WireError): Promise<void> {
	const log = await openLog(ctx, run)
	if (log) await finish({ ctx, run, log }, { status: 'failed', error, usage: usageOf(log.journal.steps) })
}

type Execution = LoggedRun & Pick<Work, 'lock'> & Pick<Active, 'begun' | 'about' | 'isFirst'>

async function executeOnce(logged: Execution): Promise<void> {
	const { ctx, run } = logged
	const agent = await ctx.use('agents').find(run.agent)
	if (!agent || agent.uid !== run.agent_uid) return // deleted; the deletion sweeps its runs
	if (await isOrphan(ctx.store, run)) return finish(logged, { status: 'stopped' })

	const began = Date.now()
	const active_ms = (): number => run.active_ms + Date.now() - began - work.waited_ms
	const limits = { ...ctx.config.limits, ...agent.config.limits, ...run.limits }
	const account = ctx.use('usage').account(run.run_id, agent, agent.config.limits ?? {}, run.payer)
	const keep = ctx.config.keep_requests > 0 ? requestKeeper(ctx, logged) : undefined
	const work: Active = { ...logged, agent, limits, account, keep, waited_ms: 0, active_ms }
	try {
		const taken = work.begun ? null : await takeUp(work)
		const outcome = taken === null ? await think(work) : taken
		if (work.begun && !(await work.begun.isWritten)) return
		if (outcome.status !== 'paused') await finish(work, outcome)
	} finally {
		account.close()
	}
}

/** Writes that the run begins or continues. Returns its outcome if it must not, or must still wait. */
async function takeUp(work: Active): Promise<Final | Paused | null> {
	const { ctx, run, agent, log } = work
	const { last, lastEvent, steps } = log.journal
	if (last === 0 || lastEvent?.event_type === 'run.queued') {
		const about = await (takeAbout(run.run_id) ?? aboutRun(ctx, run, agent))
		work.about = about?.content
		watched(writeBeginning(log, { run, agent, about }))
		return null
	}
	const unreadable = unreadableStep(steps)
	if (unreadable !== null) {
		const message = `another version of the gateway executed this run, and this one cannot continue from its step (${unreadable}): start it again. What it did and said remains in its events`
		return { status: 'failed', error: { code: 'upgrade_incompatible', message }, usage: usageOf(steps) }
	}
	// The gateway ended before it executed the run.
	if (work.isFirst && isAtBeginning(log)) return null
	const waits = waitsIn(log.journal)
	if (waits.length > 0) {
		const left = await resume(work, waits)
		if (left.length === 0 || (left.length < waits.length && hasApproved(log.journal))) return null
		if (!hasUnfinishedBefore(log.journal, left)) {
			await (left.length < waits.length ? pauseAgain : showPaused)(work, left)
			return { status: 'paused' }
		}
	}
	const sinceStep = steps.slice(steps.findLastIndex(({ kind }) => kind === 'model' || kind === 'tool') + 1)
	const { departed = false } = work.lock
	work.lock.departed = false
	if (!departed && sinceStep.filter(({ kind }) => kind === 'restart').length >= RESTART_LIMIT) {
		const message = `the gateway or its thread ended in the same step of this run again after ${RESTART_LIMIT} restarts; it is not retried`
		return { status: 'failed', error: { code: 'restart_loop', message }, usage: usageOf(steps) }
	}
	await log.append(
		[{ event_type: 'run.resumed', payload: { reason: 'restart' } }],
		departed ? undefined : { kind: 'restart' },
	)
	return null
}

/** Gives the run to a thread and serves the thread's requests. */
async function think(work: Active): Promise<Final | Paused> {
	const { ctx, run, agent, log, account } = work
	const { steps } = log.journal
	const { signal } = work.lock
	let order: RunOrder
	try {
		await transcribe(work)
		order = await compose(work)
	} catch (error) {
		if (!(error instanceof Fault)) throw error
		return { status: 'failed', error: toWire(error), usage: usageOf(steps) }
	}
	if (signal.aborted || work.begun?.isRefused) return { status: 'stopped' }
	const begun = new Set(steps.flatMap((step) => (step.kind === 'begun' ? [step.call_id] : [])))
	/** What calls of tools need; made with the first, since most runs make none. */
	let calls: { asks: Asks; signal: AbortSignal; over: AbortController } | undefined
	const forCalls = () => {
		// A call may outlast the run, for example after its wall-time limit.
		const over = new AbortController()
		const untilOver = AbortSignal.any([signal, over.signal])
		return { over, signal: untilOver, asks: openAsks(work, untilOver, () => handle.hold()) }
	}
	/** Calls of the latest answer, by the id that the worker uses. */
	let asWritten = new Map<string, ToolCallRequest>()
	const handle = ctx.pool.execute(order, {
		event(event) {
			if (event.event_type === 'model.request') return log.appendSoon(event)
			ctx.log.warn({ ...fieldsOf(run), ...event.payload }, event.event_type)
			watched(log.append([event], shrinkIn(event)))
		},
		stream: (content) => log.live({ event_type: 'model.stream', payload: { content } }),
		sent: (request) => work.keep?.(request),
		reserve: (call) => account.reserve(call),
		async model({ answer: told, spent }) {
			const answer = withShortReasoning(log, told)
			learnFactor(answer)
			const step: JournalStep = { kind: 'model', answer }
			const usage = usageOf([...steps, step])
			const tokens_elsewhere = await appendWith(
				log,
				run.agent_uid,
				{ events: eventsOfAnswer(answer), step },
				async () => {
					const { ops = [], result } = await chargeOps(ctx.store, run, usage)
					return { ops: [...ops, ...(await account.count(spent))], result }
				},
			)
			account.settle(spent)
			const redacted = await forModel(work, answer)
			asWritten = new Map(redacted.tool_calls.map(({ id }, at) => [id, answer.tool_calls[at] as ToolCallRequest]))
			return {
				...(tokens_elsewhere !== null && { tokens_elsewhere }),
				...(redacted !== told && { answer: redacted }),
			}
		},
		async remark(remark) {
			const { content, about } = remark
			await log.append([{ event_type: 'message.remark', payload: { content, about } }], { kind: 'remark', ...remark })
			return null
		},
		async blob({ blob, media_type }) {
			const bytes = (await ctx.use('attachments').blobs.read(run.agent_uid, blob)) ?? null
			// Text is redacted as a message is. What is in an image cannot be.
			if (!bytes || !isTextType(media_type) || !log.redactor.active) return bytes
			return Buffer.from(await forModel(work, new TextDecoder().decode(bytes)))
		},
		async tool({ call: asTold }): Promise<ToolReply> {
			// The model's output may contain a secret. The tool gets it; the model does not get it again.
			const call = asWritten.get(asTold.id) ?? asTold
			const { asks, signal: untilOver } = (calls ??= forCalls())
			const asking = asks.of(call)
			const site = {
				run_id: run.run_id,
				agent,
				conversation: run.conversation,
				signal: untilOver,
				log,
				policy: await policyOf(ctx, agent, log.journal),
				ask: asking.ask,
				asked: asking.close,
				forModel: (text: string, also: ReadonlySet<string>) => forModel(work, text, also),
				result_characters: work.limits.result_characters,
				interrupted: begun.has(call.id),
				attach: (files: readonly ToolFile[]) => storeFiles(ctx, run, agent, files),
				whyMissing: (name: string) => whyMissing(ctx, agent, name),
			}
			// Read now, not when the run began: a reload may have brought other tools.
			// What asks for it is a thread, in whose course this run is but one.
			const result = await inContext(run, async () => {
				const tools = run.tools === 'none' ? [] : await ctx.toolbox.list(agent)
				return callTool(tools, call, site, ctx.log)
			})
			const waited_ms = asks.takeWaited()
			work.waited_ms += waited_ms
			if (result.status === 'waits') return beginWait(work, call, result.wait)
			if (result.status === 'asks') return askApproval(work, call, result.wanted)
			return waited_ms > 0 ? { ...result, waited_ms } : result
		},
	})
	const abort = (): void => void handle.abort(String(signal.reason))
	signal.addEventListener('abort', abort, { once: true })
	try {
		const outcome = await handle.outcome
		if (signal.aborted) return { status: 'stopped' }
		// Nothing would ever continue it.
		if (outcome.status === 'paused' && waitsIn(log.journal).length === 0)
			throw new Fault('thread_lost', 'the thread reported that the run waits, but there is nothing that it waits for')
		return outcome
	} catch (error) {
		if (signal.aborted && isFault(error, 'thread_lost')) return { status: 'stopped' }
		work.lock.departed = isFault(error, 'thread_lost') && error.cause === DEPARTED
		throw error
	} finally {
		calls?.over.abort('the run has ended')
		signal.removeEventListener('abort', abort)
		// A run that continues from its journal must not be paused by a question that is no longer asked.
		await calls?.asks.close()
	}
}

async function toolsOf({ ctx, run, agent, lock }: Active): Promise<ToolDefinition[]> {
	if (run.tools === 'none') return []
	await toolsReady(ctx, agent, lock.signal)
	const tools = await offeredTo(ctx, agent)
	return tools.filter((tool) => isOffered(tool, run))
}

async function compose(work: Active): Promise<RunOrder> {
	const { ctx, run, agent, limits, log, account, keep } = work
	const { steps } = log.journal
	const { orders, instead_of } = await ctx.use('models').choose(agent.config)
	for (const { provider } of orders) log.involve({ provider })
	// Once, at the run's beginning: a run that waited for a thread already has its step `about`.
	if (instead_of !== undefined && steps.every(({ kind }) => kind === 'about')) {
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
	const given = work.begun?.given ?? (await storedInputs(ctx, run))
	const { since, tools: clients = [], one_call, form } = given ?? {}
	const [tools, elsewhere] = await Promise.all([
		toolsOf(work),
		mayHaveFamily(run, steps) ? charge(ctx.store, run, usageOf(steps)) : null,
	])
	// Of a run that has just begun, the journal is not written yet.
	const about = steps[0]?.kind === 'about' ? steps[0].content : work.about
	const models = given?.model ? orders.map((order) => adjusted(order, given.model)) : orders
	const system = await systemFor(ctx, run, agent, tools)
	const specs = [...tools.map(specOf), ...clients]
	for (const step of steps) if (step.kind === 'shrunk') learnLimit(step.model, step.tokens)
	const { history, context } = given?.history
		? { history: given.history, context: contextWith(agent.config, models, NO_MARKS) }
		: await composeContext(ctx, {
				run,
				config: agent.config,
				models,
				system,
				tools: specs,
				about,
				prompt: run.prompt,
				attachments: run.attachments,
				since,
			})
	const redacted = await forModel(work, {
		system,
		...(about !== undefined && { about }),
		history,
		context,
		prompt: run.prompt,
		...(run.attachments && { attachments: run.attachments }),
		...(since && { since }),
		tools: specs,
		...(form && { form }),
		journal: steps.filter((step) => step.kind === 'model' || step.kind === 'tool' || step.kind === 'remark'),
	})
	return {
		run_id: run.run_id,
		agent_id: run.agent,
		models,
		...redacted,
		...(clients.length > 0 && { client_tools: clients.map(({ name }) => name), one_call: one_call ?? false }),
		concurrent_tools: tools.filter(isConcurrent).map(({ name }) => name),
		limits,
		remaining_ms: Math.max(0, limits.wall_time_s * 1000 - run.active_ms),
		...(elsewhere !== null && { tokens_elsewhere: elsewhere }),
		...(account.isLimited && { reserves: true as const }),
		...(keep && { keeps_requests: true as const }),
	}
}

async function storedInputs({ store }: Pick<Context, 'store'>, run: RunRecord): Promise<RunInputs | undefined> {
	return run.given ? (await store.get<RunInputs>(keys.given(run.agent_uid, run.run_id)))?.value : undefined
}

/** The step that a request which was too long leaves, for this run and later ones. */
function shrinkIn({ event_type, payload }: NewEvent): JournalStep | undefined {
	if (event_type !== 'context.shrunk') return undefined
	const model = modelKey({ provider: String(payload.provider), model: String(payload.model) })
	const tokens = Number(payload.tokens)
	learnLimit(model, tokens)
	return { kind: 'shrunk', model, tokens }
}

/** The operator's limits still apply. */
function adjusted(order: ModelOrder, { max_tokens, temperature, sampling }: RunInputs['model'] = {}): ModelOrder {
	const tokens = Math.min(max_tokens ?? Infinity, order.params?.max_tokens ?? Infinity)
	const params = {
		...order.params,
		...(temperature !== undefined && { temperature }),
		...(tokens < Infinity && { max_tokens: tokens }),
	}
	return { ...order, params, ...(sampling && { sampling }) }
}

/** The text for the agent's model: without secrets, except those that a grant reveals to it, and those of `also`. */
async function forModel<T>(
	{ ctx, agent, log }: Pick<Work, 'ctx' | 'agent' | 'log'>,
	data: T,
	also: ReadonlySet<string> = new Set(),
): Promise<T> {
	if (!log.redactor.active) return data
	// If the vault cannot tell what is revealed, nothing is.
	const revealed = await ctx
		.find('vault')
		?.revealed(agent)
		.catch(() => undefined)
	return log.redactor.data(data, 'model', revealed?.union(also) ?? also)
}

type Paused = Pick<Extract<RunOutcome, { status: 'paused' }>, 'status'>
type Final = Exclude<RunOutcome, { status: 'paused' }>

async function finish(
	logged: LoggedRun & Partial<Pick<Work, 'account' | 'lock' | 'active_ms'>>,
	outcome: Final,
): Promise<void> {
	const { ctx, run, log, account } = logged
	const counting = (spent: readonly ModelUsage[] = []) =>
		account && { count: (end?: RunEnd): Promise<Op[]> => account.count(spent, end) }
	switch (outcome.status) {
		case 'completed': {
			const { usage, spent, ended_by } = outcome
			const answer = withShortReasoning(log, outcome.answer)
			learnFactor(answer)
			const ended = { status: 'completed' as const, ...completedWith(answer, ended_by), usage }
			const { steps } = log.journal
			const stored = hasActed(steps) ? await ctx.store.get<RunRecord>(keys.run(run.agent_uid, run.run_id)) : undefined
			const files = stored?.value.files
			const payload = { usage, finish_reason: ended.finish_reason, ...(files && { files }) }
			const events: NewEvent[] = [...eventsOfAnswer(answer), { event_type: 'run.completed', payload }]
			if (mayHaveFamily(run, steps)) await charge(ctx.store, run, usage)
			const step = { kind: 'model' as const, answer }
			return end(ctx, logged, ended, { events, step, ...counting(spent) })
		}
		case 'failed': {
			const { error, usage, spent = [] } = outcome
			const answer = error.code === 'model_empty' ? await answerOfFiles(logged) : undefined
			if (answer) return finish(logged, { status: 'completed', answer, usage, spent })
			ctx.log.warn({ ...fieldsOf(run), code: error.code }, `a run failed: ${error.message}`)
			const { provider_code } = error
			const payload = { error: error.message, code: error.code, ...(provider_code && { provider_code }), usage }
			const events = [{ event_type: 'run.failed', payload }]
			return end(ctx, logged, { status: 'failed', error, usage }, { events, ...counting(spent) })
		}
		case 'stopped': {
			const actor = logged.lock?.stoppedBy
			const events = [{ event_type: 'run.stopped', payload: actor ? { actor } : {} }]
			return end(ctx, logged, { status: 'stopped', usage: usageOf(log.journal.steps) }, { events })
		}
	}
}

/** A model has answered with calls: before that, the run has no files and has started no others. */
function hasActed(steps: readonly JournalStep[]): boolean {
	return steps.some(({ kind }) => kind === 'model')
}

function mayHaveFamily({ family, children }: RunRecord, steps: readonly JournalStep[]): boolean {
	return family !== undefined || children !== undefined || hasActed(steps)
}

/** A model may send files and then say nothing: their names are its answer. Undefined for a run without files. */
async function answerOfFiles({ ctx, run, log }: LoggedRun): Promise<ModelAnswer | undefined> {
	const { files = [] } = (await ctx.store.get<RunRecord>(keys.run(run.agent_uid, run.run_id)))?.value ?? {}
	const last = log.journal.steps.findLast((step) => step.kind === 'model')
	if (files.length === 0 || !last) return undefined
	const { provider, model } = last.answer
	const content = files.map(({ name }) => name).join(', ')
	const usage = { input_tokens: 0, output_tokens: 0 }
	return { content, tool_calls: [], usage, provider, model, finish_reason: 'stop' }
}

/** For events that are not awaited: if one cannot be written, the next append fails too, and that one is awaited. */
function watched(appended: Promise<void>): void {
	appended.catch(() => {})
}
