/** Google's Gemini API. */
import { providerOf } from './dialect.ts'
import type { ServerError } from './failures.ts'
import { ContentReader } from './google-answer.ts'
import { contentBody } from './google-request.ts'
import type { Provider } from './provider.ts'

export const google: Provider = providerOf({
	kind: 'google',
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
		const { model, api_key } = order
		const method = traits.streaming === false ? 'generateContent' : 'streamGenerateContent?alt=sse'
		return {
			path: `/${/^(models|tunedModels)\//.test(model) ? model : `models/${model}`}:${method}`,
			headers: api_key ? { 'x-goog-api-key': api_key } : {},
			body: contentBody(order, request, traits),
		}
	},
	readerFor: (answer) => new ContentReader(answer),
	named,
})

/** The API's refusal of thinking does not name the field. */
function named(reported: ServerError): ServerError {
	const isAboutThinking = /thinking/i.test(reported.message) && !/signature/i.test(reported.message)
	return isAboutThinking ? { ...reported, param: 'thinkingConfig' } : reported
}
