import { messageOf } from '../../core/errors.ts'
import type { ProviderKind } from '../provider-kinds.ts'
import { offline } from './offline.ts'
import { failed } from './provider.ts'
import type { Provider } from './provider.ts'

/** Each is loaded when the first order needs it. */
const providers: Record<ProviderKind, () => Promise<Provider>> = {
	offline: () => Promise.resolve(offline),
	openai: async () => (await import('./openai.ts')).openai,
	'openai-responses': async () => (await import('./openai-responses.ts')).openaiResponses,
	anthropic: async () => (await import('./anthropic.ts')).anthropic,
	ollama: async () => (await import('./ollama.ts')).ollama,
	google: async () => (await import('./google.ts')).google,
}

/** Caches the providers: even an import of a loaded module costs 20 µs. */
const opened = new Map<ProviderKind, Provider>()

/** Never rejects. */
export async function openProvider(kind: ProviderKind): Promise<Provider> {
	const known = opened.get(kind)
	if (known) return known
	try {
		const provider = await providers[kind]()
		opened.set(kind, provider)
		return provider
	} catch (error) {
		const reply = failed('model_unavailable', `the client for ${kind} cannot be loaded: ${messageOf(error)}`)
		return { ask: () => Promise.resolve(reply) }
	}
}
