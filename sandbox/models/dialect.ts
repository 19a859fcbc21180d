/** What one API needs beyond what all of them share: the waits, the failures, and what refusals teach. */
import type { ModelOrder } from '../order.ts'
import { AnswerBuilder } from './answer.ts'
import { failureOf } from './failures.ts'
import type { ServerError } from './failures.ts'
import { whenSent } from './http.ts'
import { failed, ModelError } from './provider.ts'
import type { AskIo, ModelReply, ModelRequest, Provider } from './provider.ts'
import { askWithWorkarounds } from './ask-with-workarounds.ts'
import type { Traits } from './traits.ts'

export interface Dialect {
	/** Fields of a request that can be left out, by the names that servers call them. */
	optional: readonly string[]
	/** Sends one request and puts what comes into the answer. Throws ModelError, and what `send` does. */
	exchange(exchange: Exchange): Promise<void>
	/** Completes what a server said of its refusal. */
	named?(said: ServerError): ServerError
}

export interface Exchange {
	order: ModelOrder
	request: ModelRequest
	traits: Traits
	answer: AnswerBuilder
	signal: AbortSignal
}

export function providerOf(dialect: Dialect): Provider {
	return {
		ask: (order, request, io) =>
			askWithWorkarounds(order, request, dialect.optional, (traits) => attempt(dialect, order, request, traits, io)),
	}
}

async function attempt(
	dialect: Dialect,
	order: ModelOrder,
	request: ModelRequest,
	traits: Traits,
	io: AskIo,
): Promise<ModelReply> {
	// One controller for both ends.
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
		const exchange = (): Promise<void> => dialect.exchange({ order, request, traits, answer, signal })
		await (io.onSent ? whenSent.run(io.onSent, exchange) : exchange())
		if (!signal.aborted) answer.check()
	} catch (error) {
		// A server that breaks the connection after its last word has said all that matters.
		if (!signal.aborted && (!answer.isWhole || error instanceof ModelError))
			return failureOf(error, order, dialect.named)
	} finally {
		clearTimeout(timer)
		io.signal.removeEventListener('abort', abort)
	}
	if (timedOut) {
		return failed('model_timeout', `no whole answer within ${order.timeout_ms / 1000} s`, { retryable: true })
	}
	if (signal.aborted) return failed('model_interrupted', 'the call was aborted', { retryable: false })
	return { status: 'answered', answer: answer.answer(order, request) }
}
