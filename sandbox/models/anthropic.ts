/** Anthropic's Messages API. */
import { malformed } from './answer.ts'
import { MessageReader } from './anthropic-answer.ts'
import { messageBody } from './anthropic-request.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import { send } from './http.ts'
import type { Provider } from './provider.ts'

const ANTHROPIC_URL = 'https://api.anthropic.com/v1'
/** Of the API; the only one there is. */
const VERSION = '2023-06-01'

export const anthropic: Provider = providerOf({
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
	exchange,
})

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const headers = { 'anthropic-version': VERSION, ...(order.api_key && { 'x-api-key': order.api_key }) }
	const sent = { path: '/messages', headers, body: messageBody(order, request, traits) }
	const reader = new MessageReader(answer)
	let type = ''
	try {
		const content = await send(order, ANTHROPIC_URL, sent, signal, (event) => reader.take(event))
		if (typeof content.body === 'object') reader.takeWhole(content.body)
		type = content.type
	} finally {
		reader.end()
	}
	if (!answer.isUntouched) return
	throw malformed(
		`the server answered with ${type || 'nothing'} instead of a message; is base_url right? It ends in /v1`,
	)
}
