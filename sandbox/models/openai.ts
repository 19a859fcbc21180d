/** Any server with OpenAI's chat completions API. */
import { providerOf } from './dialect.ts'
import { bearer } from './http.ts'
import { ChatReader } from './openai-answer.ts'
import { bodyOf } from './openai-request.ts'
import type { Provider } from './provider.ts'

export const openai: Provider = providerOf({
	kind: 'openai',
	optional: [
		'temperature',
		'top_p',
		'max_tokens',
		'reasoning_effort',
		'parallel_tool_calls',
		'stop',
		'seed',
		'frequency_penalty',
		'presence_penalty',
		'verbosity',
	],
	expected: 'a stream of events; is base_url right? Most end in /v1',
	requestOf: (order, request, traits) => ({
		path: '/chat/completions',
		headers: bearer(order),
		body: bodyOf(order, request, traits),
	}),
	readerFor: (answer, tools) => new ChatReader(answer, tools),
})
