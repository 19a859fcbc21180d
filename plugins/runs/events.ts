import type { EventType } from '../../core/plugin.ts'

const usage = 'Tokens of the whole run so far: `input_tokens` and `output_tokens`; `cost` where models have prices.'
const primitiveCall = {
	primitive: 'Its name, such as `memory.store`.',
	call_id: 'The call, unique in its run.',
}

export default {
	'run.queued': {
		description: 'A run waits for an earlier run of its conversation.',
		payload: {
			conversation: 'The conversation in which it waits.',
		},
	},
	'run.retried': {
		description: 'A failed or stopped run was started again, as this run.',
		payload: {
			retried: 'The failed or stopped run.',
			run_id: 'The run that was started in its place.',
		},
	},
	'run.started': {
		description: 'A run begins to work on its prompt.',
		payload: {
			trigger:
				'What started it: `api`, `chat`, the type of a channel, `webhook`, `heartbeat`, `subagent`, `compaction`, `summary`, `sampling`, `openai` or `mcp`.',
			conversation: 'The conversation that it belongs to.',
			'parent_run_id?': 'The run that started it as a sub-agent.',
			'request_id?': 'The request that started it, as in `X-Request-Id` and the log.',
			'traceparent?': "The caller's `traceparent`, as in W3C Trace Context.",
		},
	},
	'run.paused': {
		description: 'A run waits for the answer to a question, or for the end of a sub-agent.',
		payload: {
			'question_id?': 'The question that it waits for.',
			'waits_for?': 'The run that it waits for.',
		},
	},
	'run.resumed': {
		description: 'A run continues after a pause or an interruption.',
		payload: {
			reason:
				'`answer` or `subagent`; `withdrawn` or `expired` if the question was closed without an answer; `restart` if the gateway, its thread or the lender was lost.',
			'question_id?': 'The question that it waited for.',
			'run_id?': 'The sub-agent that it waited for.',
		},
	},
	'run.completed': {
		description: 'A run ended with an answer.',
		payload: {
			usage,
			finish_reason:
				'Why it ended: why the model stopped, such as `stop` or `length`, or the limit that led to its last call.',
			'files?': 'The files that are sent with the answer: `name`, `blob`, `media_type` and `size` of each.',
		},
	},
	'run.failed': {
		description: 'A run ended with an error.',
		payload: {
			error: 'What went wrong, for people.',
			code: 'The [code of the error](http-api.md#codes).',
			'provider_code?': "The error code of the model's provider.",
			'provider_status?': 'The HTTP status with which the provider refused the request.',
			usage,
		},
	},
	'run.stopped': {
		description: 'A run was stopped or cancelled; neither `run.completed` nor `run.failed` follows.',
		payload: {
			'usage?':
				'Tokens of the whole run, as in `run.completed`, if a model call was stopped; an estimate if its server had not reported them.',
		},
	},
	'context.shrunk': {
		description:
			'A request was too long for a model, or left no room for the answer; it is sent again with less of the conversation.',
		payload: {
			provider: 'The name of the provider.',
			model: 'The model that rejected it.',
			tokens: 'The maximum of estimated tokens for requests to this model, for the rest of the run.',
		},
	},
	'context.summarized': {
		description: 'Older turns of a conversation were summarized, so that requests may omit them.',
		payload: {
			conversation: 'The conversation.',
			since: 'The first turn that the summary covers, as a run_id.',
			through: 'The last one.',
			turns: 'How many it covers.',
			characters: 'Length of the summary.',
			memory_ids: 'Memories that store facts of these turns.',
			'summary_run_id?': 'The run in which a model wrote it; absent with the offline provider.',
		},
	},
	'context.summary_failed': {
		description:
			'A summary could not be made. The model gets a list of the turns instead; another attempt follows after a later run.',
		payload: {
			conversation: 'The conversation.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What went wrong, for people.',
		},
	},
	'conversation.deleted': {
		description: 'A conversation was deleted with its runs, messages and summary.',
		payload: {
			conversation: 'The conversation.',
		},
	},
	'message.user': {
		description: 'The message of the user to the agent.',
		payload: {
			content: 'The text.',
			'attachments?':
				'Attachments: the `type` (`image`, `file` or `audio`), `blob`, `media_type`, `size` and `name` of each.',
		},
	},
	'message.transcribed': {
		description: 'A recording of the prompt was transcribed, or could not be transcribed.',
		payload: {
			blob: 'The recording.',
			content: 'Its text; null if it could not be transcribed.',
			'error?': 'Why it could not be transcribed.',
		},
	},
	'message.assistant': {
		description: 'The answer of the agent.',
		payload: {
			content: 'The text.',
		},
	},
	'message.said': {
		description:
			'A message was added to a conversation outside of its runs: a delivered result, or a message sent by a caller.',
		payload: {
			content: 'The text.',
			conversation: 'The conversation that it is now part of.',
			about: 'The reason for it, as the model sees it.',
		},
	},
	'message.undelivered': {
		description:
			'The result of a run, or a message sent by a caller, could not be delivered to its chat. The gateway does not retry.',
		payload: {
			run_id: 'The run, or the message.',
			channel_id: 'The channel; null if it is unknown because channels are switched off.',
			chat_id: 'Its chat; null if it is unknown because channels are switched off.',
			code: '`unbound`, `deleted` (the channel), `refused` (by the platform), `late` (not sent within 24 hours), `queue_full`, or `unavailable` (channels are switched off).',
			message: 'Why, for people.',
		},
	},
	'message.reasoning': {
		description:
			'The reasoning of the model before its answer, if the provider shows it. It is not part of the answer.',
		payload: {
			content: 'The text, at most 65,536 characters.',
		},
	},
	'message.system': {
		description: 'The persona with which a run begins.',
		payload: {
			content: 'The text.',
		},
	},
	'message.remark': {
		description: 'A note from the gateway to the model: a limit is near, this is the last call, or calls repeat.',
		payload: {
			content: 'The text.',
			about: 'Its cause: `limit_steps`, `limit_tokens`, `limit_wall_time` or `repeated_calls`.',
		},
	},
	'question.asked': {
		description: 'An agent asks a question and waits for the answer.',
		payload: {
			question_id: 'Its id, which the answer needs.',
			question: 'The text.',
			'options?': 'The answers to choose from.',
			'kind?':
				'`approval`: a tool call waits for approval; `login`: it waits until an operator has signed in. Absent: a question of the agent.',
			'tool?': 'Of an approval: the tool, such as `memory.store`, `mcp__files__write` or `skill:business-days`.',
			'arguments?': 'Of an approval: the complete arguments of the call.',
			'expires_at?': 'Of an approval: when it counts as refused.',
		},
	},
	'question.answered': {
		description: 'A question of an agent was answered.',
		payload: {
			question_id: 'The question.',
			answer: 'The text; of an approval `approve`, `approve_always`, `edit` or `refuse`.',
			'arguments?': 'With `edit`: the arguments with which the call is made.',
			'reason?': 'With `refuse`: the reason, which the model gets.',
		},
	},
	'primitive.called': {
		description: 'An agent calls a primitive.',
		payload: {
			...primitiveCall,
			arguments: 'The arguments, as JSON text; cut if long.',
		},
	},
	'primitive.result': {
		description: 'A primitive answered.',
		payload: {
			...primitiveCall,
			result: 'The result as the model gets it, as text; cut if long.',
			'attachments?': 'Its attachments, as in `message.user`.',
		},
	},
	'primitive.failed': {
		description: 'A primitive failed.',
		payload: {
			...primitiveCall,
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
} satisfies Record<string, EventType>
