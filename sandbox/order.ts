/** The parts of an order for the agent loop: models, conversation and form of the answer. */
import type { ObjectSchema, Root } from 'joi'
import type { Attachment, ChatMessage } from '../core/protocol.ts'
import type { ProviderKind } from './provider-kinds.ts'

declare module '../core/protocol.ts' {
	interface RunOrder {
		/** First the agent's own model, then its fallbacks; never empty. */
		models: ModelOrder[]
		system: string | null
		context?: ContextOrder
		/** Time, place and cause of the run, for the model; precedes the prompt. */
		about?: string
		prompt: string
		/** Attachments of the prompt. */
		attachments?: Attachment[]
		/** Messages after the prompt from before this run; if they end with an answer, it is continued. */
		since?: ChatMessage[]
		/** Names of the tools whose calls end the run, because its client makes them. */
		client_tools?: string[]
		/** At most one call of those in an answer. */
		one_call?: boolean
		form?: AnswerForm
		/** Names of the tools whose calls may run at the same time as other calls of the same answer. */
		concurrent_tools?: string[]
		/** Tokens of other runs, such as sub-agents, that count toward `limits.tokens`. */
		tokens_elsewhere?: number
		/** A daily limit applies: each model call must be reserved first. */
		reserves?: true
		/** Requests are kept, so each must be reported. */
		keeps_requests?: true
	}
}

/** Settings of model calls, with the names of OpenAI's chat completions. A dialect leaves out those that it lacks. */
export interface ModelParams {
	/** 0–2. */
	temperature?: number
	top_p?: number
	/** Of one answer, its reasoning included. */
	max_tokens?: number
	reasoning_effort?: string
	parallel_tool_calls?: boolean
	stop?: string | string[]
	seed?: number
}

/** The schema of `ModelParams`, for the settings of a provider and of an agent. */
export function modelParams(joi: Root): ObjectSchema {
	return joi.object({
		temperature: joi.number().min(0).max(2).description('Randomness, from 0 to 2.'),
		top_p: joi.number().min(0).max(1).description('Nucleus sampling: the share of probability to sample from, 0 to 1.'),
		max_tokens: joi.number().integer().min(1).description('Maximum tokens of one answer, reasoning included.'),
		reasoning_effort: joi
			.string()
			.valid('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')
			.description('How much the model may reason: none, minimal, low, medium, high, xhigh or max.'),
		parallel_tool_calls: joi.boolean().description('false: at most one tool call in an answer.'),
		stop: joi
			.alternatives(joi.string().max(256), joi.array().items(joi.string().max(256)).max(4))
			.description('Text, or list of up to 4 texts; the answer ends before any of them.'),
		seed: joi.number().integer().description('The same seed gives similar answers, if the provider supports it.'),
	})
}

/** What a server supports. Absent fields are determined from its refusals. */
export interface Compat {
	max_tokens_field?: 'max_tokens' | 'max_completion_tokens'
	tools?: boolean
	streaming?: boolean
	stream_options?: boolean
	developer_role?: boolean
	images?: boolean
	/** Documents, such as PDF. Text files are sent as text and need nothing. */
	files?: boolean
	audio?: boolean
}

/** The prices of a model per million tokens, in any currency. */
export interface Prices {
	input: number
	/** For input from the provider's cache; default: as other input. */
	cached_input?: number
	output: number
}

/** A model that a run may call, with everything that the call needs. Later ones in an order are fallbacks. */
export interface ModelOrder {
	/** The provider's name in gateway.yaml. */
	provider: string
	kind: ProviderKind
	model: string
	base_url?: string
	/** In memory only; never journalled or sent to a client. */
	api_key?: string
	/** Sent with each call; like the key, in memory only. */
	headers?: Record<string, string>
	/** Added to the address of each call. */
	query?: Record<string, string>
	/** Fields of the request's body, which override those of the dialect. */
	extra_body?: Record<string, unknown>
	params?: ModelParams
	/** Further settings of one run, with the names of OpenAI's chat completions. A dialect ignores those that it lacks. */
	sampling?: Record<string, unknown>
	/** Tokens that the model accepts, its answer included. */
	context_window?: number
	/** Absent if the operator set none. */
	prices?: Prices
	compat?: Compat
	/** Limit of one attempt of a model call. */
	timeout_ms: number
	/** The provider limits concurrent calls: each needs a slot. */
	needs_slot?: true
	/** How long to wait for a server that cannot be reached: it may be starting. Absent: 0. */
	startup_timeout_ms?: number
}

/** The required form of a run's answer. A model whose answer has another form is asked again. */
export interface AnswerForm {
	/** JSON only. */
	json?: JsonForm
	/** A call of one of these tools of the client; never empty. */
	call?: string[]
}

export interface JsonForm {
	/** 1-64 of `a-z A-Z 0-9 _ -`. */
	name: string
	description?: string
	/** JSON Schema. Absent: any object. */
	schema?: Record<string, unknown>
	/** Whether the provider must enforce the schema; then some accept few schemas. */
	strict?: boolean
}

/** Where a conversation is cut for its models; see sandbox/context/fit.ts. Ids of turns are those of their runs, and sort by time. */
export interface ContextMarks {
	/** The first turn that is shown; null: the first one of the conversation. */
	from: string | null
	/** The first turn that is shown completely. */
	whole: string | null
	/** Turns before `from` that no summary covers, newest last: their ids and beginnings. */
	omitted: { run_id: string; line: string }[]
	/** The text that replaces the turns before `from`. */
	earlier: string | null
}

export interface ContextSummary {
	/** The newest turn that it covers. */
	through: string
	text: string
}

/** The data for fitting a conversation into a window, besides its messages. */
export interface ContextOrder {
	marks: ContextMarks
	summary?: ContextSummary
	/** The agent's limit of the tokens of a request. */
	tokens: number
	/** Learned limits of models, and their tokens per estimated token, by `provider/model`. */
	limits: Record<string, number>
	factors: Record<string, number>
}
