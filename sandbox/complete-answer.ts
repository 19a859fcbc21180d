/** Asks the model until an answer is complete: neither empty nor cut off. */
import { addUsage } from '../core/protocol.ts'
import type { ModelAnswer, Usage } from '../core/protocol.ts'
import type { AskModel, ModelIo } from './ask-model.ts'
import { addRemark } from './conversation.ts'
import { failed } from './models/provider.ts'
import type { ModelReply, ModelRequest, Turn } from './models/provider.ts'

/** Retries after an empty answer. The last one tells the model what is wrong. */
const RETRIES = 2
/** Further calls that continue one answer. */
const CONTINUATIONS = 3

const EMPTY = 'your answer was empty. Answer the message above in plain text, or call a tool.'
const CUT =
	'[Remark of the gateway: your answer was cut off at its maximum length. Continue exactly where it ended, and repeat nothing.]'

interface Allowed {
	mayContinue(answer: ModelAnswer, usage: Usage): boolean
	/** For answers that the model ended itself. */
	mayBeEmpty: boolean
}

/**
 * Never rejects. After an empty answer, asks again, and finally fails with `model_empty`; with `mayBeEmpty`, an empty answer is
 * accepted. An answer that a filter emptied fails with `model_filtered`. An answer that was cut off is continued if `mayContinue`
 * allows it, and the parts are joined. `usage`: of all calls. Emits `model.retry` and `model.continued`.
 */
export async function askForCompleteAnswer(
	askModel: AskModel,
	request: ModelRequest,
	io: ModelIo,
	{ mayContinue, mayBeEmpty }: Allowed,
): Promise<{ reply: ModelReply; usage: Usage }> {
	const usage: Usage = { input_tokens: 0, output_tokens: 0 }
	let parts: ModelAnswer[] = []
	let empty = 0
	let turns: Turn[] = [...request.turns]
	for (;;) {
		const reply = await askModel({ ...request, turns }, io)
		if (io.signal.aborted) return { reply, usage }
		if (reply.status === 'failed') return { reply: parts.length > 0 ? answered(parts, usage) : reply, usage }
		const { answer } = reply
		addUsage(usage, answer.usage)
		const { provider, model, finish_reason } = answer
		const isBlank = answer.content.trim() === '' && answer.tool_calls.length === 0
		if (!isBlank || parts.length > 0 || (mayBeEmpty && finish_reason === 'stop')) {
			parts = [...parts, answer]
			const isCut = finish_reason === 'length' && answer.tool_calls.length === 0
			if (isBlank || !isCut || parts.length > CONTINUATIONS || !mayContinue(answer, usage))
				return { reply: answered(parts, usage), usage }
			const content = textOf(parts)
			io.emit({ event_type: 'model.continued', payload: { provider, model, characters: content.length } })
			turns = [...request.turns, { role: 'assistant', content, tool_calls: [] }, { role: 'user', content: CUT }]
			continue
		}
		if (finish_reason === 'content_filter') {
			const message = `a content filter of ${provider} removed the whole answer`
			return { reply: failed('model_filtered', message), usage }
		}
		const message = whyEmpty(answer)
		if (empty === RETRIES) return { reply: failed('model_empty', `${message}, ${empty + 1} times`), usage }
		empty++
		io.emit({
			event_type: 'model.retry',
			payload: { provider, model, attempt: empty, delay_ms: 0, code: 'model_empty', message },
		})
		if (empty === RETRIES) addRemark(turns, EMPTY)
	}
}

function whyEmpty({ provider, model, reasoning, finish_reason }: ModelAnswer): string {
	const who = `${provider} (${model})`
	if (finish_reason === 'length')
		return `${who} used all tokens of its answer before any text; raise max_tokens, or set context_window to the size of the model's window if that was full`
	return reasoning === undefined ? `${who} returned an empty answer` : `${who} returned reasoning, but no answer`
}

/** Joins the parts. The provider state of a part does not match the joined answer, so it is omitted. */
function answered(parts: ModelAnswer[], usage: Usage): ModelReply {
	const [first, last] = [parts[0], parts.at(-1)] as [ModelAnswer, ModelAnswer]
	if (first === last) return { status: 'answered', answer: { ...first, usage } }
	const { provider_state: _state, reasoning: _reasoning, ...rest } = last
	const reasoning = parts.flatMap((part) => part.reasoning ?? []).join('\n')
	const content = textOf(parts)
	return { status: 'answered', answer: { ...rest, content, usage, ...(reasoning !== '' && { reasoning }) } }
}

function textOf(parts: readonly ModelAnswer[]): string {
	return parts.map((part) => part.content).join('')
}
