/** Google's Gemini API. */
import { malformed } from './answer.ts'
import { providerOf } from './dialect.ts'
import type { Exchange } from './dialect.ts'
import type { ServerError } from './failures.ts'
import { ContentReader } from './google-answer.ts'
import { contentRequest } from './google-request.ts'
import { send } from './http.ts'
import type { Provider } from './provider.ts'
import { isObject } from './values.ts'

const GOOGLE_URL = 'https://generativelanguage.googleapis.com/v1beta'

export const google: Provider = providerOf({
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
	exchange,
	named,
})

async function exchange({ order, request, traits, answer, signal }: Exchange): Promise<void> {
	const { model, contents, config } = contentRequest(order, request, traits)
	const method = traits.streaming === false ? 'generateContent' : 'streamGenerateContent?alt=sse'
	const sent = {
		path: `/${/^(models|tunedModels)\//.test(model) ? model : `models/${model}`}:${method}`,
		headers: order.api_key ? { 'x-goog-api-key': order.api_key } : {},
		body: merged(bodyOf(contents, config), order.extra_body),
	}
	const reader = new ContentReader(answer)
	const { body } = await send(order, GOOGLE_URL, sent, signal, (chunk) => reader.take(chunk))
	// Without `alt=sse`, which some proxies drop, the chunks come as one list.
	if (typeof body === 'object') for (const chunk of [body].flat()) reader.take(chunk)
	if (!answer.isUntouched) return
	throw malformed('the server answered with something else than contents; is base_url right? It ends in /v1beta')
}

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
