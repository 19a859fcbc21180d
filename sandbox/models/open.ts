import { messageOf } from '../../core/errors.ts'
import type { ModelOrder } from '../../core/protocol.ts'
import { offline } from './offline.ts'
import { failed } from './provider.ts'
import type { Provider } from './provider.ts'

/** Loaded when the first order needs it: the SDK costs about 100 ms and 15 MB in each thread. Never rejects. */
export async function openProvider(kind: ModelOrder['kind']): Promise<Provider> {
	if (kind === 'offline') return offline
	try {
		const { openai } = await import('./openai.ts')
		return openai
	} catch (error) {
		const reply = failed('model_unavailable', `the OpenAI client cannot be loaded: ${messageOf(error)}`, {
			retryable: false,
		})
		return { ask: () => Promise.resolve(reply) }
	}
}
