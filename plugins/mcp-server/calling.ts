/** Converts a tool call from the SDK to the form that tools receive. */
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type {
	ClientCapabilities,
	RequestId,
	ServerNotification,
	ServerRequest,
} from '@modelcontextprotocol/sdk/types.js'
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import type { QuestionText } from '../../core/plugin.ts'
import type { Clearance } from '../../core/redactor/redactor.ts'
import type { McpCall, McpContext } from './call.ts'
import type { ClientLog } from './client-log.ts'

/** The part of a session that its requests use. */
export interface Site {
	ctx: McpContext
	isAllowed(scope: string): boolean
	/** For messages to the client: the gateway's own redaction of responses does not cover them. */
	clearance: Clearance
	/** Aborts when the session ends, or is about to: calls stop waiting for runs, which continue. */
	leaving: AbortSignal
	/** What the client gets of runs, besides results and progress. */
	log: ClientLog
	/** The full name of a conversation of this caller; without a name, the session's own. */
	conversation(name?: string): string
	/** Counts a call until the returned function is called. Throws `rate_limited`. */
	beginCall(): () => void
	/** A request was cancelled, and has no response. */
	forget(id: RequestId): void
}

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

const ANSWER_BYTES = 100 * 1024
const PROGRESS_CHARACTERS = 300

export function callOf(
	{ clearance, leaving, log, conversation }: Site,
	extra: Extra,
	client: ClientCapabilities | undefined,
): McpCall {
	const token = extra._meta?.progressToken
	const signal = AbortSignal.any([leaving, extra.signal])
	let cancelled = false
	let progress = 0
	const cancel = (): void => {
		// The SDK aborts it as well when the session ends.
		cancelled = !leaving.aborted
	}
	extra.signal.addEventListener('abort', cancel, { once: true })
	if (extra.signal.aborted) cancel()

	const ask = async (question: QuestionText, limitMs: number, withdrawn: AbortSignal): Promise<string | null> => {
		const params = clearance.data(formOf(question))
		const request = { method: 'elicitation/create' as const, params }
		try {
			const { action, content } = await extra.sendRequest(request, ElicitResultSchema, {
				timeout: limitMs,
				signal: withdrawn,
			})
			const answer = action === 'accept' ? content?.answer : undefined
			return typeof answer === 'string' && Buffer.byteLength(answer) <= ANSWER_BYTES ? answer : null
		} catch {
			return null // it cannot ask after all, or no answer came in time
		}
	}
	return {
		signal,
		get cancelled() {
			return cancelled
		},
		conversation,
		progress(text) {
			if (token === undefined || signal.aborted) return
			const message = clearance.text(text).slice(0, PROGRESS_CHARACTERS).toWellFormed()
			const params = { progressToken: token, progress: ++progress, message }
			extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {}) // the client has left
		},
		log(level, data) {
			if (signal.aborted) return
			const taken = log.take(level)
			if (!taken) return
			const left = taken.leftOut > 0 ? { left_out: taken.leftOut } : {}
			const params = { level, logger: 'runs', data: clearance.data({ ...data, ...left }) }
			extra.sendNotification({ method: 'notifications/message', params }).catch(() => {}) // the client has left
		},
		...(canAsk(client) && { ask }),
	}
}

/** By a form; older clients do not declare the mode, since there was no other. */
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
