/** Executes a run on a thread: sends its order, and answers the thread's requests. */
import { Fault, isFault, toWire } from '../../core/errors.ts'
import { usageOf } from '../../core/protocol.ts'
import type { NewEvent, RunOrder } from '../../core/protocol.ts'
import { DEPARTED } from '../../core/runs/worker-threads.ts'
import { modelKey } from '../../sandbox/context/budget.ts'
import { decodeText, isTextType } from '../../sandbox/text-type.ts'
import { composeOrder } from './compose-order.ts'
import { learnFrom } from './context.ts'
import { chargeOps } from './family.ts'
import { forModel } from './for-model.ts'
import { eventsOfAnswer, withShortReasoning } from './journal.ts'
import type { JournalStep } from './journal-step.ts'
import { appendWith } from './records.ts'
import { openModelSlot } from './model-slot.ts'
import { warnOfModel } from './model-warnings.ts'
import { waitsIn } from './open-waits.ts'
import { unawaited } from './run-log.ts'
import type { RunLog } from './run-log.ts'
import { openCalls } from './thread-calls.ts'
import { transcribe } from './transcribe.ts'
import type { Final, Paused, Work } from './work.ts'

/** Characters of an error's message. */
const MESSAGE_LIMIT = 500

/** Gives the run to a thread and serves the thread's requests. */
export async function serveThread(work: Work): Promise<Final | Paused> {
	const { ctx, run, log, account } = work
	const { steps } = log.journal
	const { signal } = work.lock
	let order: RunOrder
	try {
		await transcribe(work)
		order = await composeOrder(work)
		work.models = order.models
	} catch (error) {
		if (!(error instanceof Fault)) throw error
		return { status: 'failed', error: toWire(error), usage: usageOf(steps) }
	}
	if (signal.aborted || work.fresh?.isRefused) return { status: 'stopped' }
	const over = new AbortController()
	const calls = openCalls(work, over.signal, () => handle.hold())
	const slot = openModelSlot(work, over.signal, () => handle.hold())
	const handle = ctx.pool.execute(order, {
		event(told) {
			if (told.event_type === 'model.request') return log.appendSoon(told)
			const event = { ...told, payload: withShortMessage(log, told.payload) }
			warnOfModel(ctx, run, event)
			unawaited(log.append([event], shrinkIn(event)))
		},
		stream: (content) => log.live({ event_type: 'model.stream', payload: { content } }),
		sent: (request) => work.keep?.(request),
		reserve: (call) => account.reserve(call),
		slot: ({ provider, model }) => slot.take(provider, model),
		async leave_slot() {
			slot.leave()
			return null
		},
		async model({ answer: told, spent }) {
			const answer = withShortReasoning(log, told)
			learnFrom(answer, order.models)
			const step: JournalStep = { kind: 'model', answer }
			const usage = usageOf([...steps, step])
			const answered = { events: eventsOfAnswer(answer), step }
			const tokens_elsewhere = await appendWith(log, run.agent_uid, answered, async () => {
				const { ops = [], result } = await chargeOps(ctx.store, run, usage)
				return { ops: [...ops, ...(await account.count(spent))], result }
			})
			account.settle(spent)
			const redacted = await forModel(work, answer)
			calls.expect(redacted.tool_calls, answer.tool_calls)
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
			// Text is redacted like a message. The content of an image cannot be.
			if (!bytes || !isTextType(media_type) || !log.redactor.active) return bytes
			return Buffer.from(await forModel(work, decodeText(bytes)))
		},
		tool: ({ call }) => calls.call(call),
	})
	const abort = (): void => void handle.abort(String(signal.reason))
	signal.addEventListener('abort', abort, { once: true })
	try {
		const outcome = await handle.outcome
		if (signal.aborted) return { status: 'stopped', spent: ('spent' in outcome && outcome.spent) || [] }
		// Nothing would ever continue it.
		if (outcome.status === 'paused' && waitsIn(log.journal).length === 0)
			throw new Fault('thread_lost', 'the thread reported that the run waits, but there is nothing that it waits for')
		return outcome.status === 'failed' ? { ...outcome, error: withShortMessage(log, outcome.error) } : outcome
	} catch (error) {
		if (signal.aborted && isFault(error, 'thread_lost')) return { status: 'stopped' }
		work.lock.departed = isFault(error, 'thread_lost') && error.cause === DEPARTED
		throw error
	} finally {
		signal.removeEventListener('abort', abort)
		// Calls may outlast the run, for example after its wall-time limit.
		over.abort('the run has ended')
		slot.leave()
		// A withdrawn question must not keep a run paused that continues from its journal.
		await calls.untilWithdrawn()
	}
}

/** Shortened here and not on the thread: the thread does not know the secrets, and a cut could leave a part of one. */
function withShortMessage<T extends object>({ redactor }: RunLog, about: T): T {
	if (!('message' in about) || typeof about.message !== 'string') return about
	const { text, dropped } = redactor.cut(about.message, MESSAGE_LIMIT, 'event')
	return { ...about, message: dropped > 0 ? `${text}…` : text }
}

/** The journal step of a request that was too long: it limits later requests of the run. */
function shrinkIn({ event_type, payload }: NewEvent): JournalStep | undefined {
	if (event_type !== 'context.shrunk') return undefined
	const model = modelKey({ provider: String(payload.provider), model: String(payload.model) })
	return { kind: 'shrunk', model, tokens: Number(payload.tokens) }
}
