/** For each kind of model server: the requests that list its models and test a model, and the parsers of their answers. */
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import type { ServerKind } from '../../sandbox/provider-kinds.ts'

export type { ServerKind }

export interface Dialect {
	headers(api_key?: string): Record<string, string>
	/** The path of the list of models, appended to the base URL. */
	list: string
	/** The names of the models in that list; the caller drops values that are not strings. */
	names(body: unknown): unknown[]
	/** The request of a short call of the model. */
	trial(model: string, prompt: string): { path: string; body: object }
	/** Whether the body has the form of an answer to `trial`. */
	isAnswer(body: unknown): boolean
}

/** Whether a text can be a key. Other texts are invalid in a header, and an error of the HTTP client would quote them. */
export function isKey(text: string): boolean {
	return /^[\x21-\x7e]+$/.test(text)
}

/** Whether this is the address of OpenAI itself, and not of a compatible server. */
export function isOpenAI(base_url: string): boolean {
	return URL.parse(base_url)?.hostname === 'api.openai.com'
}

const bearer = (api_key?: string): Record<string, string> =>
	api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }

/** The objects in a list of the body; empty if there is no such list. */
function listIn(body: unknown, name: string): Record<string, unknown>[] {
	const list = fieldsOf(body)[name]
	return Array.isArray(list) ? list.filter(isObject) : []
}

const idsIn = (body: unknown): unknown[] => listIn(body, 'data').map(({ id }) => id)

// Without a token limit if the API requires none, since the name of that field differs between servers.
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
				.filter(({ supportedGenerationMethods: all }) => !Array.isArray(all) || all.includes('generateContent'))
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
		isAnswer: (body) => isObject(fieldsOf(body).message),
	},
}

export function isServerKind(kind: string): kind is ServerKind {
	return Object.hasOwn(dialects, kind)
}

/** The dialect of a provider with an address; `openai` for kinds without a separate one. */
export function dialectOf(kind: string): Dialect {
	return dialects[isServerKind(kind) ? kind : 'openai']
}
