/** The types of this server's tools. */
import type { LoggingLevel, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js'
import type Joi from 'joi'
import type { Context, QuestionText, Services } from '../../core/plugin.ts'
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
