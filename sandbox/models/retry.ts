/** Retries a model if that may help, then asks the next model of the order. */
import { setTimeout as sleep } from 'node:timers/promises'
import { toWire } from '../../core/errors.ts'
import { addUsage, SENT_CHARACTERS } from '../../core/protocol.ts'
import type { Usage } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import type { ModelIo } from '../ask-model.ts'
import { withFiles } from '../attachments/load.ts'
import { openProvider } from './open.ts'
import { knownCost, reservationOf } from './cost.ts'
import { failed } from './provider.ts'
import type { ModelCode, ModelFailure, ModelReply, ModelRequest } from './provider.ts'

const standard = {
	/** Attempts of one model after the first. */
	retries: 3,
	/** The wait before the first retry, in milliseconds; doubled for each further one. */
	baseMs: 500,
	/** The longest wait, even if the server asks for more; then plus the random part. */
	capMs: 60_000,
}
type RetryPolicy = typeof standard

/**
 * Never rejects. If every model failed, the code is that of the last one, and the message contains the messages of all.
 *
 * Emits `model.request` for each model that is asked, `model.retry` before each further attempt (text streamed by the previous
 * attempt is void) and `model.fallback` before the next model. If a daily limit refuses a call, it is not made, and no other model
 * is asked.
 */
export async function askModels(
	models: readonly ModelOrder[],
	requestFor: (order: ModelOrder) => ModelRequest,
	io: ModelIo,
	policy: RetryPolicy = standard,
): Promise<ModelReply> {
	const failures: { order: ModelOrder; failure: ModelFailure }[] = []
	const usage: Usage = { input_tokens: 0, output_tokens: 0 }
	for (const [at, order] of models.entries()) {
		const whole = requestFor(order)
		const slot = slotFor(order, io)
		const refusal = (await slot.take()) ?? (await refusalOf(order, whole, io))
		if (refusal) {
			slot.leave()
			return refusal
		}
		const request = order.kind === 'offline' ? whole : await withFiles(whole, io.blob)
		const messages = request.turns.length + (request.system === null ? 0 : 1)
		const { provider, model } = order
		io.emit({
			event_type: 'model.request',
			payload: { provider, model, step: io.step, messages, tools: request.tools.length },
		})
		const next = models[at + 1]
		// A fallback may answer at once, so only the last model's server is given time to start, or asked again after a timeout.
		const isLast = next === undefined
		const reply = await askOne(order, request, { io, slot }, { ...policy, isLast }, usage)
		if (reply.status === 'answered' || io.signal.aborted) return reply
		failures.push({ order, failure: reply.failure })
		if (!next) break
		const { code, message } = reply.failure
		io.emit({ event_type: 'model.fallback', payload: { from: provider, to: next.provider, code, message } })
	}
	const reasons = failures.map(({ order, failure }) => `${order.provider} (${order.model}): ${failure.message}`)
	const last = failures.at(-1)?.failure
	const { code = 'model_unavailable', provider_code, stated, is_cut } = last ?? {}
	// The status is reported only if all models failed for the same reason.
	const status = failures.every(({ failure }) => failure.code === code) ? last?.status : undefined
	return failed(code, reasons.join('; '), { provider_code, stated, status, is_cut, usage: is_cut && last?.usage })
}

type Slot = ReturnType<typeof slotFor>

/** The slot of one call, for a provider that limits concurrent calls. */
function slotFor({ needs_slot, provider, model }: ModelOrder, { slot }: Pick<ModelIo, 'slot'>) {
	let leave: (() => void) | undefined
	return {
		/** Waits for a slot, unless the call has one or needs none. Resolves to a failure if it cannot get one. Never rejects. */
		async take(): Promise<ModelReply | undefined> {
			if (!needs_slot || !slot || leave) return undefined
			try {
				leave = await slot({ provider, model })
				return undefined
			} catch (error) {
				const { code, message } = toWire(error)
				return failed(code as ModelCode, message)
			}
		},
		leave(): void {
			leave?.()
			leave = undefined
		},
	}
}

/** Undefined if the call may be made. */
async function refusalOf(order: ModelOrder, request: ModelRequest, io: ModelIo): Promise<ModelReply | undefined> {
	if (!io.reserve) return undefined
	// It rejects if the run is stopped meanwhile.
	const refusal = await io.reserve(reservationOf(order, request)).catch(toWire)
	return refusal ? failed(refusal.code as ModelCode, refusal.message) : undefined
}

/** Sets the cost of a reply, reports its usage, and adds it to `sum`. An answer gets the usage of all attempts. */
function counted(order: ModelOrder, reply: ModelReply, io: ModelIo, sum: Usage): ModelReply {
	const reported = reply.status === 'answered' ? reply.answer.usage : reply.failure.usage
	if (!reported) return reply
	const { provider, model, prices } = order
	const cost = knownCost(order, reported)
	const priced = cost === undefined ? reported : { ...reported, cost }
	io.spent({ provider, model, usage: priced })
	// A run shows a cost only if the operator has set a price.
	addUsage(sum, prices ? priced : reported)
	if (reply.status === 'failed') return reply
	return { ...reply, answer: { ...reply.answer, usage: { ...sum }, request_tokens: reported.input_tokens } }
}

async function askOne(
	order: ModelOrder,
	request: ModelRequest,
	{ io, slot }: { io: ModelIo; slot: Slot },
	policy: RetryPolicy & { isLast: boolean },
	usage: Usage,
): Promise<ModelReply> {
	const { kind, provider, model } = order
	const client = await openProvider(kind)
	const began = Date.now()
	let attemptsAtStart = 0
	for (let attempt = 1; ; attempt++) {
		const asked = {
			signal: io.signal,
			onText: io.stream,
			onSent: sentBy(order, io),
			onToolsRefused: (message: string) =>
				io.emit({ event_type: 'model.tools_refused', payload: { provider, model, message } }),
		}
		const reply = (await slot.take()) ?? counted(order, await client.ask(order, request, asked), io, usage)
		// Released while this call waits for its next attempt.
		slot.leave()
		if (reply.status === 'answered' || io.signal.aborted) return reply
		const { code, message, retryable } = reply.failure
		const isStarting = policy.isLast && Date.now() < began + startupMs(order, reply.failure)
		if (isStarting) attemptsAtStart++
		if (!retryable || attempt - attemptsAtStart > policy.retries) return reply
		if (code === 'model_timeout' && !policy.isLast) return reply
		const capMs = isStarting && !reply.failure.retryAfterMs ? Math.min(policy.capMs, STARTING_MS) : policy.capMs
		const wait_ms = waitBefore(attempt, reply.failure, { ...policy, capMs })
		// At least `baseMs`: some proxies ask for no wait, and these attempts are not counted.
		const delay_ms = isStarting ? Math.max(wait_ms, policy.baseMs) : wait_ms
		io.emit({ event_type: 'model.retry', payload: { provider, model, attempt, delay_ms, code, message } })
		try {
			await sleep(delay_ms, undefined, { signal: io.signal })
		} catch {
			return reply // aborted while it waited
		}
	}
}

/** The longest wait between attempts while a server starts. */
const STARTING_MS = 5_000

/** How long the server may take to start, in milliseconds, if this failure shows that it may be starting. */
function startupMs({ timeout_ms, startup_timeout_ms = 0 }: ModelOrder, failure: ModelFailure): number {
	if (isLoading(failure)) return Math.max(timeout_ms, startup_timeout_ms)
	return failure.is_unreachable ? startup_timeout_ms : 0
}

/** llama.cpp answers so from its start until the model is in memory, which takes minutes for a large one. */
function isLoading({ status, message }: ModelFailure): boolean {
	return status === 503 && /\bloading\b/i.test(message)
}

function sentBy({ provider, model }: ModelOrder, { sent, step }: ModelIo): ((body: string) => void) | undefined {
	return sent && ((body) => sent({ provider, model, step, body: body.slice(0, SENT_CHARACTERS), size: body.length }))
}

/**
 * The wait that the server asks for, and up to a quarter more; else exponential backoff, less up to half. Random, so that runs that
 * failed together are not retried together.
 */
function waitBefore(attempt: number, failure: ModelFailure, { baseMs, capMs }: RetryPolicy): number {
	const { retryAfterMs } = failure
	const longest = baseMs * 2 ** (attempt - 1)
	const backoff = filledTogether(failure) ? longest * 16 * Math.random() : longest * (1 - Math.random() / 2)
	// The random part is added to the limit, too: a server may ask all runs for more than that.
	const asked = retryAfterMs && Math.min(retryAfterMs, capMs) * (1 + Math.random() / 4)
	return Math.round(asked ?? Math.min(backoff, capMs))
}

/**
 * llama.cpp shares its context among requests, and fails all of them when it is full. Retries that overlap with each other would
 * fail together again.
 */
function filledTogether({ message }: ModelFailure): boolean {
	return /context size has been exceeded/i.test(message)
}
