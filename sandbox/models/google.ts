/** Google's Gemini API. */
import { providerOf } from './dialect.ts'
import type { ServerError } from './failures.ts'
import { ContentReader } from './google-answer.ts'
import { contentRequest } from './google-request.ts'
import type { Provider } from './provider.ts'
import { isObject } from './values.ts'

export const google: Provider = providerOf({
	url: 'https://generativelanguage.googleapis.com/v1beta',
	optional: [
		'temperature',
		'topP',
		'maxOutputTokens',
		'stopSequences',
		'seed',
		'presencePenalty',
		'frequencyPenalty',
		'thinkingConfig',
		'toolConfig',
	],
	expected: 'contents; is base_url right? It ends in /v1beta',
	requestOf(order, request, traits) {
		const { model, contents, config } = contentRequest(order, request, traits)
		const method = traits.streaming === false ? 'generateContent' : 'streamGenerateContent?alt=sse'
		return {
			path: `/${/^(models|tunedModels)\//.test(model) ? model : `models/${model}`}:${method}`,
			headers: order.api_key ? { 'x-goog-api-key': order.api_key } : {},
			body: merged(bodyOf(contents, config), order.extra_body),
		}
	},
	readerFor: (answer) => new ContentReader(answer),
	named,
})

/** Fields of a request that are no settings of the generation. */
const OUTSIDE = ['tools', 'toolConfig', 'safetySettings', 'cachedContent', 'labels', 'serviceTier']

function bodyOf(contents: unknown, { systemInstruction, ...config }: Record<string, unknown>): Record<string, unknown> {
	const settings = Object.entries(config).filter(([name]) => !OUTSIDE.includes(name))
	return {
		contents,
		...(typeof systemInstruction === 'string' && { systemInstruction: { parts: [{ text: systemInstruction }] } }),
		...Object.fromEntries(Object.entries(config).filter(([name]) => OUTSIDE.includes(name))),
		...(settings.length > 0 && { generationConfig: Object.fromEntries(settings) }),
	}
}

/** Objects are merged, all else is replaced. */
function merged(body: Record<string, unknown>, extra: Record<string, unknown> = {}): Record<string, unknown> {
	const all = { ...body, ...extra }
	for (const [name, value] of Object.entries(extra)) {
		const own = body[name]
		if (isObject(own) && isObject(value)) all[name] = merged(own, value)
	}
	return all
}

/** A refusal of thinking names it in words of its own. */
function named(said: ServerError): ServerError {
	const isAboutThinking = /thinking/i.test(said.message) && !/signature/i.test(said.message)
	return isAboutThinking ? { ...said, param: 'thinkingConfig' } : said
}
