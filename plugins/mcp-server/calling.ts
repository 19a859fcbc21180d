/** The call of a tool as the SDK hands it over, made into what tools see of it. */
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js'
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import type { QuestionText } from '../../core/plugin.ts'
import type { McpCall } from './call.ts'
import type { Extra, Site } from './requests.ts'

const ANSWER_BYTES = 100 * 1024
const PROGRESS_CHARACTERS = 300

/** `release` is called when the call has ended. */
export function callOf(
	{ ctx: { redactor }, leaving, isOver, conversation }: Site,
	extra: Extra,
	client: ClientCapabilities | undefined,
): { call: McpCall; release: () => void } {
	const token = extra._meta?.progressToken
	const stop = new AbortController()
	const abort = (): void => stop.abort()
	let cancelled = false
	const cancel = (): void => {
		// The SDK aborts it as well when the session ends.
		cancelled = !isOver()
		abort()
	}
	let progress = 0
	leaving.addEventListener('abort', abort, { once: true })
	extra.signal.addEventListener('abort', cancel, { once: true })
	if (extra.signal.aborted) cancel()
	if (leaving.aborted) abort()

	const ask = async (question: QuestionText, limitMs: number, signal: AbortSignal): Promise<string | null> => {
		const params = redactor.data(formOf(question), 'response')
		const request = { method: 'elicitation/create' as const, params }
		try {
			const { action, content } = await extra.sendRequest(request, ElicitResultSchema, { timeout: limitMs, signal })
			const answer = action === 'accept' ? content?.answer : undefined
			return typeof answer === 'string' && Buffer.byteLength(answer) <= ANSWER_BYTES ? answer : null
		} catch {
			return null // it cannot ask after all, or nobody answered in time
		}
	}
	const call: McpCall = {
		signal: stop.signal,
		get cancelled() {
			return cancelled
		},
		conversation,
		progress(text) {
			if (token === undefined || stop.signal.aborted) return
			const message = redactor.text(text.slice(0, PROGRESS_CHARACTERS).toWellFormed(), 'response')
			const params = { progressToken: token, progress: ++progress, message }
			extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {}) // the client has left
		},
		...(canAsk(client) && { ask }),
	}
	return {
		call,
		release() {
			leaving.removeEventListener('abort', abort)
			extra.signal.removeEventListener('abort', cancel)
		},
	}
}

/** By a form; a client from before there were other ways says nothing of it. */
function canAsk(client: ClientCapabilities | undefined): boolean {
	const ways = client?.elicitation
	return ways !== undefined && (ways.form !== undefined || ways.url === undefined)
}

function formOf({ question, options }: QuestionText) {
	const answer = {
		type: 'string' as const,
		title: 'Answer',
		...(options && options.length > 0 && { enum: [...new Set(options)] }),
	}
	const requestedSchema = { type: 'object' as const, properties: { answer }, required: ['answer'] }
	return { message: question, requestedSchema }
}
