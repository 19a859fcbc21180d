/** What the tools of this server are made of. */
import type Joi from 'joi'
import type { Context, QuestionText, Services } from '../../core/plugin.ts'
import type { McpServerSettings } from './contract.ts'

export type McpContext = Context<McpServerSettings>

export interface McpTool {
	name: string
	/** For people. */
	title: string
	/** For the model. */
	description: string
	/** What a token needs for it. */
	scope: string
	/** A plugin without which it is not offered. */
	service?: keyof Services
	/** Its arguments, checked before `run`. */
	input: Joi.ObjectSchema
	/** Its `structuredContent`. */
	output: Joi.ObjectSchema
	annotations: {
		readOnlyHint: boolean
		destructiveHint: boolean
		/** A second call with the same arguments changes nothing more. */
		idempotentHint: boolean
		/** What it does may reach beyond the gateway. */
		openWorldHint: boolean
	}
	/** Throws a Fault, which the model is told. */
	run(ctx: McpContext, args: never, call: McpCall): Promise<Outcome>
}

export interface Outcome {
	data: Record<string, unknown>
	/** For clients that show text only. Default: the data as JSON. */
	text?: string
	/** What was asked for did not come about. */
	failed?: boolean
}

/** One call of a tool that is under way. */
export interface McpCall {
	/** Aborts when nobody waits for the result any more, and when the session is about to end. */
	signal: AbortSignal
	/** The client has taken the call back: what it began shall stop. */
	readonly cancelled: boolean
	/** The full name of a conversation of this caller; without a name, the session's own. */
	conversation(name?: string): string
	/** Tells the client how far it is, where it wants to know. */
	progress(message: string): void
	/**
	 * Asks the person at the client. Null where they do not want to say, or no answer came before `signal` aborted or
	 * `limitMs` were over. Absent where the client cannot ask.
	 */
	ask?(question: QuestionText, limitMs: number, signal: AbortSignal): Promise<string | null>
}
