/** Anthropic's Messages API. */
import { MessageReader } from './anthropic-answer.ts'
import { messageBody } from './anthropic-request.ts'
import { providerOf } from './dialect.ts'
import type { Provider } from './provider.ts'

/** The only version of the API. */
const VERSION = '2023-06-01'

export const anthropic: Provider = providerOf({
	kind: 'anthropic',
	optional: [
		'temperature',
		'top_p',
		'max_tokens',
		'stop_sequences',
		'thinking',
		'output_config',
		'cache_control',
		'tool_choice',
	],
	expected: 'a message; is base_url right? It ends in /v1',
	requestOf: (order, request, traits) => ({
		path: '/messages',
		headers: { 'anthropic-version': VERSION, ...(order.api_key && { 'x-api-key': order.api_key }) },
		body: messageBody(order, request, traits),
	}),
	readerFor: (answer) => new MessageReader(answer),
})
