/** What an order tells the agent loop: which models to call, what they get of the conversation, and what the answer must be. */
import type { ObjectSchema, Root } from 'joi'
import type { Attachment, ChatMessage } from '../core/protocol.ts'
import type { ProviderKind } from './provider-kinds.ts'

declare module '../core/protocol.ts' {
	interface RunOrder {
		/** First the agent's own model, then its fallbacks; never empty. */
		models: ModelOrder[]
		system: string | null
		context?: ContextOrder
		/** Time, place and cause of the run, for the model; comes before the prompt. */
		about?: string
		prompt: string
		/** What came with the prompt. */
		attachments?: Attachment[]
		/** What was said since the prompt before this run began; an answer at its end is continued. */
		since?: ChatMessage[]
		/** Names of those tools whose calls end the run: the client that started it makes them. */
		client_tools?: string[]
		/** At most one call of those in an answer. */
		one_call?: boolean
		form?: AnswerForm
		/** Names of those tools whose calls may run at the same time as others of the same answer. */
		concurrent_tools?: string[]
		/** Tokens that other runs of its family used; they count towards `limits.tokens`. */
		tokens_elsewhere?: number
		/** A limit of a day applies: each call of a model must be reserved before. */
		reserves?: true
		/** Requests are kept: each must be reported. */
		keeps_requests?: true
	}
}

/** Settings of model calls, by the names of OpenAI's chat completions; a dialect without one leaves it out. */
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

/** What a server can do. What is absent is found out by the first refusal. */
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

/** What a model costs: money per million tokens, in the operator's currency, which is not named. */
export interface Prices {
	input: number
	/** Of input that is read from the provider's cache; default: as other input. */
	cached_input?: number
	output: number
}

/** A model that a run may call, with all that it takes to call it. Later ones in an order are fallbacks. */
export interface ModelOrder {
	/** The provider's name in gateway.yaml. */
	provider: string
	kind: ProviderKind
	model: string
	base_url?: string
	/** Lives in memory only; never journalled, never sent to a client. */
	api_key?: string
	/** Sent with each call; like the key, in memory only. */
	headers?: Record<string, string>
	/** Added to the address of each call. */
	query?: Record<string, string>
	/** Fields of the request's body, over those that the dialect writes. */
	extra_body?: Record<string, unknown>
	params?: ModelParams
	/** Further settings of one run by the names of OpenAI's chat completions; a dialect without them leaves them. */
	sampling?: Record<string, unknown>
	/** Tokens that the model takes, its answer included. */
	context_window?: number
	/** Absent where the operator set none. */
	prices?: Prices
	compat?: Compat
	/** Whole wait for one model call, its retries not counted. */
	timeout_ms: number
	/** The provider limits concurrent calls: each needs a slot. */
	needs_slot?: true
	/** How long to wait for a server that cannot be reached: it may be starting. Absent: 0. */
	startup_timeout_ms?: number
}

/** What the answer of a run must be; a model that says something else is asked again. */
export interface AnswerForm {
	/** JSON, and nothing else. */
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
	/** Whether a provider must keep to the schema exactly; some accept few schemas then. */
	strict?: boolean
}

/** Where a conversation is cut for its models; see sandbox/context/fit.ts. Ids of turns are those of their runs, and sort by time. */
export interface ContextMarks {
	/** The turn with which what is shown begins; null: the first one. */
	from: string | null
	/** The first turn that is shown whole. */
	whole: string | null
	/** Turns before `from` that no summary covers, newest last: their ids and how they begin. */
	omitted: { run_id: string; line: string }[]
	/** What stands for the turns before `from`. */
	earlier: string | null
}

export interface ContextSummary {
	/** The newest turn that it covers. */
	through: string
	text: string
}

/** What fitting a conversation into a window goes by, besides its messages. */
export interface ContextOrder {
	marks: ContextMarks
	summary?: ContextSummary
	/** Tokens of a request that the agent allows, if the window is larger. */
	tokens: number
	/** Limits that models turned out to have, and what an estimated token counts there, by `provider/model`. */
	limits: Record<string, number>
	factors: Record<string, number>
}
