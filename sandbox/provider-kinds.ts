/**
 * The APIs of model servers, as `kind` in gateway.yaml, with the default address of each. Add a new kind here first: the compiler
 * reports the other tables that need it.
 */
export const serverUrls = {
	openai: 'https://api.openai.com/v1',
	'openai-responses': 'https://api.openai.com/v1',
	anthropic: 'https://api.anthropic.com/v1',
	google: 'https://generativelanguage.googleapis.com/v1beta',
	ollama: 'http://127.0.0.1:11434/api',
}

export type ServerKind = keyof typeof serverUrls

/** The API that a provider speaks, or the built-in model. */
export type ProviderKind = ServerKind | 'offline'
