/** Any server that speaks OpenAI's chat completions, streamed. */
import type { ModelOrder } from '../../core/protocol.ts'
import { clientFor } from './openai-client.ts'
import { failureOf } from './openai-errors.ts'
import { finishReason } from './finish-reason.ts'
import { bodyOf } from './openai-request.ts'
import { AnswerBuilder } from './openai-stream.ts'
import { failed, ModelError } from './provider.ts'
import type { AskIo, ModelReply, ModelRequest, Provider } from './provider.ts'
import { estimateUsage } from './usage.ts'

export const openai: Provider = { ask }

async function ask(order: ModelOrder, request: ModelRequest, io: AskIo): Promise<ModelReply> {
	// One controller for both ends: the SDK's own timeout stops counting once the headers are there.
	const controller = new AbortController()
	let timedOut = false
	const timer = setTimeout(() => {
		timedOut = true
		controller.abort()
	}, order.timeout_ms)
	const abort = (): void => controller.abort()
	if (io.signal.aborted) abort()
	else io.signal.addEventListener('abort', abort, { once: true })
	try {
		const reply = await exchange(order, request, io.onText, controller.signal)
		return timedOut ? timeout(order) : reply
	} finally {
		clearTimeout(timer)
		io.signal.removeEventListener('abort', abort)
	}
}

async function exchange(
	order: ModelOrder,
	request: ModelRequest,
	onText: AskIo['onText'],
	signal: AbortSignal,
): Promise<ModelReply> {
	const answer = new AnswerBuilder(request.tools)
	try {
		const client = clientFor(order)
		const options = { signal, timeout: order.timeout_ms, maxRetries: 0 }
		const { data: stream, response } = await client.chat.completions
			.create(bodyOf(order, request), options)
			.withResponse()
		for await (const chunk of stream) {
			const text = answer.take(chunk)
			if (text !== '' && !signal.aborted) onText(text)
		}
		// The SDK ends the iteration silently when it is aborted: what came so far is no answer.
		if (signal.aborted) return failed('model_interrupted', 'the call was aborted', { retryable: false })
		answer.finish(response.headers.get('content-type'))
	} catch (error) {
		// A server that breaks the connection after its last word has said all that matters.
		if (signal.aborted || !answer.isWhole || error instanceof ModelError) return failureOf(error, order)
	}
	const { content, tool_calls } = answer
	const finish_reason = finishReason(answer.finish_reason, tool_calls.length > 0)
	const said = content + tool_calls.map((call) => call.name + call.arguments).join('')
	const usage = answer.usage ?? estimateUsage(request, said)
	const { provider, model } = order
	return { status: 'answered', answer: { content, tool_calls, usage, provider, model, finish_reason } }
}

function timeout({ timeout_ms }: ModelOrder): ModelReply {
	return failed('model_timeout', `no whole answer within ${timeout_ms / 1000} s`, { retryable: true })
}
