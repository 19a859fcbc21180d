/** How a server of each kind lists its models, and answers a short prompt. */
import type { ServerKind } from '../../sandbox/provider-kinds.ts'

export type { ServerKind }

export interface Dialect {
	headers(api_key?: string): Record<string, string>
	/** Where the models are listed, appended to the base URL. */
	list: string
	/** The models' names in the answer; the caller drops those that are not strings. */
	names(body: unknown): unknown[]
	/** A short call of the model. */
	trial(model: string, prompt: string): { path: string; body: object }
	/** Whether the body is an answer of such a server to the trial. */
	isAnswer(body: unknown): boolean
}

/** Whether a text can be a key: others cannot be sent, and an error of the HTTP client would quote them. */
export function isKey(text: string): boolean {
	return /^[\x21-\x7e]+$/.test(text)
}

/** OpenAI's own address, rather than one that speaks its protocol. */
export function isOpenAI(base_url: string): boolean {
	return URL.parse(base_url)?.hostname === 'api.openai.com'
}

const bearer = (api_key?: string): Record<string, string> =>
	api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }

/** What is in a list of the body, or nothing. */
function listIn(body: unknown, name: string): Record<string, unknown>[] {
	const list = (body as Record<string, unknown> | null | undefined)?.[name]
	return Array.isArray(list) ? list.filter((one) => typeof one === 'object' && one !== null) : []
}

const idsIn = (body: unknown): unknown[] => listIn(body, 'data').map(({ id }) => id)

// Without a token limit where the API needs none, as the gateway calls them: servers do not agree on the name of that field.
export const dialects: Record<ServerKind, Dialect> = {
	openai: {
		headers: bearer,
		list: '/models',
		names: idsIn,
		trial: (model, content) => ({ path: '/chat/completions', body: { model, messages: [{ role: 'user', content }] } }),
		isAnswer: (body) => listIn(body, 'choices').length > 0,
	},
	'openai-responses': {
		headers: bearer,
		list: '/models',
		names: idsIn,
		trial: (model, input) => ({ path: '/responses', body: { model, input, store: false } }),
		isAnswer: (body) => listIn(body, 'output').length > 0,
	},
	anthropic: {
		headers: (api_key) => ({
			'anthropic-version': '2023-06-01',
			...(api_key !== undefined && { 'x-api-key': api_key }),
		}),
		list: '/models?limit=1000',
		names: idsIn,
		trial: (model, content) => ({
			path: '/messages',
			body: { model, max_tokens: 256, messages: [{ role: 'user', content }] },
		}),
		isAnswer: (body) => listIn(body, 'content').length > 0,
	},
	google: {
		headers: (api_key): Record<string, string> => (api_key === undefined ? {} : { 'x-goog-api-key': api_key }),
		list: '/models?pageSize=1000',
		names: (body) =>
			listIn(body, 'models')
				.filter(
					({ supportedGenerationMethods: methods }) => !Array.isArray(methods) || methods.includes('generateContent'),
				)
				.map(({ name }) => (typeof name === 'string' ? name.replace(/^models\//, '') : name)),
		trial: (model, text) => ({
			path: `/models/${encodeURIComponent(model)}:generateContent`,
			body: { contents: [{ role: 'user', parts: [{ text }] }] },
		}),
		isAnswer: (body) => listIn(body, 'candidates').length > 0,
	},
	ollama: {
		headers: bearer,
		list: '/tags',
		names: (body) => listIn(body, 'models').map(({ name }) => name),
		trial: (model, content) => ({
			path: '/chat',
			body: { model, stream: false, messages: [{ role: 'user', content }] },
		}),
		isAnswer: (body) => typeof (body as { message?: unknown } | null | undefined)?.message === 'object',
	},
}

export function isServerKind(kind: string): kind is ServerKind {
	return Object.hasOwn(dialects, kind)
}

/** Of a provider with an address; kinds that have none of their own are asked as `openai`. */
export function dialectOf(kind: string): Dialect {
	return dialects[isServerKind(kind) ? kind : 'openai']
}
