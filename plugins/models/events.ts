import type { EventType } from '../../core/plugin.ts'

export default {
	'model.queued': {
		description: 'A model call waits: its provider already has as many as `max_concurrent_calls` allows.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model to call.',
		},
	},
	'model.request': {
		description: 'A model is called.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that is called.',
			step: 'The number of the step in this run.',
			messages: 'The number of messages in the request.',
			tools: 'The number of tools that it can call.',
		},
	},
	'model.response': {
		description: 'A model has answered, with the tokens that it used.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that answered.',
			finish_reason: 'Why it stopped: `stop`, `tool_calls`, `length`, `content_filter` or `other`.',
			usage: 'Tokens of this call: `input_tokens` and `output_tokens`; `cost` if the model has a price.',
			tool_calls: 'The names of the tools that it calls.',
		},
	},
	'model.stream': {
		description: 'A piece of an answer while the model streams it; delivered live and not stored.',
		payload: {
			content: 'The piece of text.',
		},
	},
	'model.retry': {
		description: 'A model call failed and is repeated after a delay.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that is called again.',
			attempt: 'The number of the attempt that failed, from 1.',
			delay_ms: 'Milliseconds until the next one.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
	'model.continued': {
		description: 'An answer was cut off at its maximum length, and the model is asked to continue it.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that is asked.',
			characters: 'The length of the answer so far.',
		},
	},
	'model.tools_refused': {
		description:
			'A server refused the tools of a request; they are described to the model in text until the gateway stops.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that is asked.',
			message: "The server's message. If it refuses only some tools, or their number, other requests keep theirs.",
		},
	},
	'model.fallback': {
		description: 'A model call failed and is sent to the next provider.',
		payload: {
			from: 'The provider that failed.',
			to: 'The provider that is called now.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
} satisfies Record<string, EventType>
