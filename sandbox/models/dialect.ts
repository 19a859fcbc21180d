/** Makes a provider from a dialect: adds what all dialects share, which is timeouts, failures and workarounds. */
import type { ToolSpec } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { serverUrls } from '../provider-kinds.ts'
import type { ServerKind } from '../provider-kinds.ts'
import { AnswerBuilder, malformed } from './answer.ts'
import type { AnswerReader } from './answer.ts'
import { failureOf } from './failures.ts'
import type { ServerError } from './failures.ts'
import { send } from './http.ts'
import type { Sent } from './http.ts'
import { failed, ModelError } from './provider.ts'
import type { AskIo, ModelReply, ModelRequest, Provider } from './provider.ts'
import { askWithWorkarounds } from './ask-with-workarounds.ts'
import { toolsInText } from './tools-in-text.ts'
import type { Traits } from './traits.ts'

export interface Dialect {
	kind: ServerKind
	/** Fields of a request that can be omitted, by their names in the API. */
	optional: readonly string[]
	/** For the error about an unrecognised response: what was expected, and what to do. */
	expected: string
	/** `request`: without tools if `traits` state that the server accepts none. */
	requestOf(order: ModelOrder, request: ModelRequest, traits: Traits): Sent
	readerFor(answer: AnswerBuilder, tools: readonly ToolSpec[]): AnswerReader
	/** Completes a server's error with details that only this dialect can read. */
	named?(reported: ServerError): ServerError
}

export function providerOf(dialect: Dialect): Provider {
	return {
		ask(order, request, io) {
			const ask = (traits: Traits): Promise<ModelReply> => attempt(dialect, { order, request, traits }, io)
			return askWithWorkarounds(order, request, dialect.optional, ask, io.onToolsRefused)
		},
	}
}

interface Attempt {
	order: ModelOrder
	request: ModelRequest
	traits: Traits
}

async function attempt(dialect: Dialect, asked: Attempt, io: AskIo): Promise<ModelReply> {
	const { order, request } = asked
	// Aborts after the timeout, or with the caller's signal.
	const controller = new AbortController()
	const { signal } = controller
	let timedOut = false
	const timer = setTimeout(() => {
		timedOut = true
		controller.abort()
	}, order.timeout_ms)
	const abort = (): void => controller.abort()
	if (io.signal.aborted) abort()
	else io.signal.addEventListener('abort', abort, { once: true })
	const answer = new AnswerBuilder(request.tools, (text) => {
		if (!signal.aborted) io.onText(text)
	})
	try {
		await sendAndRead(dialect, asked, answer, signal, io.onSent)
		if (!signal.aborted) answer.check(order)
	} catch (error) {
		// If the connection breaks after a whole answer, the answer counts.
		if (!signal.aborted && (!answer.isWhole || error instanceof ModelError))
			return billed(failureOf(error, order, dialect.named), answer)
	} finally {
		clearTimeout(timer)
		io.signal.removeEventListener('abort', abort)
	}
	if (timedOut) {
		const message = `no whole answer within ${order.timeout_ms / 1000} s; if this server needs longer, raise timeout_s of provider ${order.provider}`
		return billed(failed('model_timeout', message, { retryable: true }), answer)
	}
	if (signal.aborted) {
		// Servers report usage last. A caller that stops each call before that must not evade limits.
		if (!answer.isUntouched) answer.usage ??= answer.estimated(request)
		return billed(failed('model_interrupted', 'the call was aborted'), answer)
	}
	return { status: 'answered', answer: answer.answer(order, request) }
}

/** The provider also charges for an answer that cannot be used. */
function billed(reply: ModelReply, { usage, isTooLong }: AnswerBuilder): ModelReply {
	if (reply.status === 'failed' && usage) reply.failure.usage = usage
	if (reply.status === 'failed' && isTooLong) reply.failure.is_cut = true
	return reply
}

async function sendAndRead(
	{ kind, expected, requestOf, readerFor }: Dialect,
	{ order, request, traits }: Attempt,
	answer: AnswerBuilder,
	signal: AbortSignal,
	onSent: AskIo['onSent'],
): Promise<void> {
	const sent = requestOf(order, traits.tools === false ? toolsInText(request) : request, traits)
	const reader = readerFor(answer, request.tools)
	let type = ''
	try {
		const content = await send(order, serverUrls[kind], sent, signal, (event) => reader.take(event), onSent)
		if (typeof content.body === 'object') reader.takeWhole(content.body)
		type = content.type
	} finally {
		reader.end?.()
	}
	if (!answer.isUntouched) return
	const what = type.includes('event-stream') ? 'an empty stream' : type || 'nothing'
	throw malformed(`the server answered with ${what} instead of ${expected}`)
}
