/** Asks the model until its answer has the form that the caller of the run requires: JSON, or a call of one of its tools. */
import { jsonIn } from '../../core/util/json-in.ts'
import { addUsage } from '../../core/protocol.ts'
import type { ModelAnswer, Usage, WorkerEvent } from '../../core/protocol.ts'
import type { AnswerForm } from '../order.ts'
import { failed } from '../models/provider.ts'
import type { ModelReply, ModelRequest } from '../models/provider.ts'
import { problemsIn } from './check-json.ts'

/** Further calls after an answer of another form. */
const RETRIES = 2

/**
 * Never rejects. Answers that call any tools, were cut off or were filtered are returned unchanged. Text around JSON is removed.
 * Finally, or if `mayRepeat` forbids another call, fails with `model_output_invalid`. Emits `model.retry`.
 */
export async function askForFormedAnswer(
	ask: (request: ModelRequest) => Promise<{ reply: ModelReply; usage: Usage }>,
	request: ModelRequest,
	emit: (event: WorkerEvent) => void,
	mayRepeat: (usage: Usage) => boolean,
): Promise<ModelReply> {
	const { form } = request
	const sum: Usage = { input_tokens: 0, output_tokens: 0 }
	let { turns } = request
	for (let attempt = 1; ; attempt++) {
		const { reply, usage } = await ask({ ...request, turns })
		if (!form || reply.status === 'failed') return reply
		addUsage(sum, usage)
		const { provider, model, content } = reply.answer
		const formed = formOf(reply.answer, form)
		if ('answer' in formed) return { status: 'answered', answer: { ...formed.answer, usage: sum } }
		const message = `${provider} (${model}) did not answer as the request wants: ${formed.problem}`
		if (attempt > RETRIES || !mayRepeat(sum)) return failed('model_output_invalid', message)
		emit({
			event_type: 'model.retry',
			payload: { provider, model, attempt, delay_ms: 0, code: 'model_output_invalid', message },
		})
		const remark = `[Remark of the gateway: this was not accepted: ${formed.problem}. Answer again, with nothing else.]`
		turns = [...turns, { role: 'assistant', content, tool_calls: [] }, { role: 'user', content: remark }]
	}
}

function formOf(answer: ModelAnswer, { json, call }: AnswerForm): { answer: ModelAnswer } | { problem: string } {
	const { tool_calls, finish_reason } = answer
	if (tool_calls.length > 0 || finish_reason === 'length' || finish_reason === 'content_filter') return { answer }
	if (call) return { problem: `it must be a call of ${call.join(' or ')}` }
	if (!json) return { answer }
	const { text, value } = findJson(answer.content)
	if (value === undefined) return { problem: 'it must be one JSON value, and no text around it' }
	const { schema = { type: 'object' } } = json
	const problems = problemsIn(value, schema)
	if (problems.length > 0) return { problem: `in the JSON, ${problems.join('; ')}` }
	return { answer: { ...answer, content: text } }
}

/** The JSON of an answer, which may be in a code block or surrounded by text. */
function findJson(content: string): { text: string; value?: unknown } {
	const trimmed = content.trim()
	const block = trimmed.slice(trimmed.indexOf('```'), trimmed.lastIndexOf('```')).replace(/^```\w*/, '')
	const inner = trimmed.slice(
		Math.max(0, trimmed.search(/[{[]/)),
		Math.max(trimmed.lastIndexOf('}'), trimmed.lastIndexOf(']')) + 1,
	)
	for (const text of [trimmed, block.trim(), inner]) {
		const value = jsonIn(text)
		if (value !== undefined) return { text, value }
	}
	return { text: trimmed }
}
