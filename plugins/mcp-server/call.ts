/** The types of this server's tools, and what a tool gets of a client's call. Loads the SDK, which few gateways need at the start. */
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type {
	ClientCapabilities,
	LoggingLevel,
	RequestId,
	ServerNotification,
	ServerRequest,
	ToolAnnotations,
} from '@modelcontextprotocol/sdk/types.js'
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import type Joi from 'joi'
import type { Context, QuestionText, Services } from '../../core/plugin.ts'
import type { Clearance } from '../../core/redactor/redactor.ts'
import type { ClientLog } from './client-log.ts'
import type { McpServerSettings } from './contract.ts'

export type McpContext = Context<McpServerSettings>

export interface ServedTool {
	name: string
	/** For people. */
	title: string
	/** For the model. */
	description: string
	/** The scope that a token needs for it. */
	scope: string
	/** The service of a plugin that it requires. Without it, the tool is not offered. */
	service?: keyof Services
	/** Its arguments, checked before `run`. */
	input: Joi.ObjectSchema
	/** Its `structuredContent`. */
	output: Joi.ObjectSchema
	/** Hints for clients, as the protocol defines them. */
	annotations: Required<Omit<ToolAnnotations, 'title'>>
	/** Throws a Fault, whose code and message the model gets. */
	run(ctx: McpContext, args: never, call: McpCall): Promise<CallOutcome>
}

export interface CallOutcome {
	data: Record<string, unknown>
	/** For clients that show text only. Default: the data as JSON. */
	text?: string
	/** The requested action failed. */
	failed?: boolean
}

/** One running call of a tool. */
export interface McpCall {
	/** Aborts when the result is no longer needed, and when the session is closing. */
	signal: AbortSignal
	/** The client has cancelled the call, so that its run must be stopped. */
	readonly cancelled: boolean
	/** The full name of a conversation of this caller. Without `name`: the session's own. */
	conversation(name?: string): string
	/** Reports progress to the client, if it requested that. */
	progress(message: string): void
	/** Sends a log message to the client, unless its level or its rate limit excludes the message. */
	log(level: LoggingLevel, data: Record<string, unknown>): void
	/**
	 * Asks the person at the client. Null if they decline, or if no answer arrives within `limitMs` or before `signal` aborts.
	 * Absent if the client cannot ask.
	 */
	ask?(question: QuestionText, limitMs: number, signal: AbortSignal): Promise<string | null>
}

/** The part of a session that its requests use. */
export interface SessionContext {
	ctx: McpContext
	isAllowed(scope: string): boolean
	/** Redacts messages to the client, which the redaction of HTTP responses does not cover. */
	clearance: Clearance
	/** Aborts when the session ends or is about to end: calls stop waiting for runs, which continue. */
	closing: AbortSignal
	/** The client's log, with messages about runs. */
	log: ClientLog
	conversation: McpCall['conversation']
	/** Counts a call until the returned function is called. Throws `rate_limited`. */
	beginCall(): () => void
	/** Releases a cancelled request, which gets no response. */
	forget(id: RequestId): void
}

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

const ANSWER_BYTES = 100 * 1024
const PROGRESS_CHARACTERS = 300

export function callOf(
	{ clearance, closing, log, conversation }: SessionContext,
	extra: Extra,
	client: ClientCapabilities | undefined,
): McpCall {
	const token = extra._meta?.progressToken
	const signal = AbortSignal.any([closing, extra.signal])
	let cancelled = false
	let progress = 0
	const cancel = (): void => {
		// The SDK also aborts the signal when the session ends, which is no cancellation.
		cancelled = !closing.aborted
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
			return null // the client cannot ask after all, or no answer arrived in time
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
			const admitted = log.admit(level)
			if (!admitted) return
			const omitted = admitted.omitted > 0 ? { left_out: admitted.omitted } : {}
			const params = { level, logger: 'runs', data: clearance.data({ ...data, ...omitted }) }
			extra.sendNotification({ method: 'notifications/message', params }).catch(() => {}) // the client has left
		},
		...(canAsk(client) && { ask }),
	}
}

/** Whether the client supports forms. Older clients declare no mode, since forms were the only one. */
function canAsk(client: ClientCapabilities | undefined): boolean {
	const modes = client?.elicitation
	return modes !== undefined && (modes.form !== undefined || modes.url === undefined)
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
