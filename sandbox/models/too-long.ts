/** The only place that decides whether a server refused a request because it is too long for its model. */

const CODE = /context_length|context_window|string_above_max_length|model_max_prompt_tokens/

const MESSAGE = new RegExp(
	[
		'maximum context length',
		'context[_ ](length|size|window)[_ ]?(is )?(exceed|limit|overflow)',
		'(exceed|larger|longer|greater)\\w* (than )?(the )?(\\w+ )?(available |maximum |model.?s )?context',
		'context (length|window|size) of (only )?\\d',
		'exceed_context_size',
		'(prompt|input|conversation) is too long',
		'(prompt|input|request)( is|:)? too (long|large).{0,60}token',
		'input (is )?too long for',
		'input token count.{0,40}exceeds',
		'too many (input )?tokens',
		'tokens? (count )?exceeds? the (maximum|limit)',
		'reduce the length of the (messages|prompt|input)',
		'exceeds the limit of \\d+ tokens',
		'prompt contains \\d+ tokens',
	].join('|'),
	'i',
)

/** Some local servers answer with 500, and some others with 429. */
const STATUSES: readonly number[] = [400, 422, 429, 500]

/** `code`: the code or type in the server's error. */
export function isTooLong(status: number, code: string, message: string): boolean {
	return status === 413 || CODE.test(code) || (STATUSES.includes(status) && mentionsTokenLimit(message))
}

/** Whether the message is about tokens. */
export function mentionsTokenLimit(message: string): boolean {
	return MESSAGE.test(message)
}

/** The numbers in a server's error about a request that is too long. */
export interface StatedLimit {
	/** Tokens that the model accepts, its answer included. */
	window: number
	/** Tokens of the request, if the server counted them. */
	request?: number
}

/** The window in the messages of known servers. The first match applies. */
const WINDOWS: readonly RegExp[] = [
	/context limit: [\d,]+ \+ [\d,]+ > ([\d,]+)/i, // Anthropic, with the greatest length of the answer
	/tokens > ([\d,]+) maximum/i, // Anthropic
	/with ([\d,]+) maximum context length/i, // Mistral
	/maximum (?:context|prompt|model) length (?:is|of) ([\d,]+)/i, // OpenAI, vLLM, OpenRouter, xAI, SGLang
	/maximum number of tokens allowed \(?([\d,]+)/i, // Gemini
	/context (?:size|length|window) (?:of |is )?(?:only )?\(?([\d,]+)/i, // llama.cpp, LM Studio, SGLang
	/exceeds (?:the )?limit of ([\d,]+)/i, // GitHub, vLLM
	/\(TPM\): limit ([\d,]+)/i, // Groq, of the tokens of a minute
]

/** The tokens of the request alone; no pattern matches a lower bound, or a sum with the longest possible answer. */
const REQUESTS: readonly RegExp[] = [
	/(?:request|input|prompt) \(([\d,]+) tokens\)/i, // llama.cpp, SGLang, vLLM
	/(?:prompt is too long:|prompt contains|messages resulted in) ([\d,]+) tokens/i, // Anthropic, Mistral, OpenAI
	/\(([\d,]+) in (?:the messages|your prompt)/i, // OpenAI, vLLM
	/request has ([\d,]+) input tokens/i, // vLLM
	/token count \(([\d,]+)\)/i, // Gemini
]

/** Undefined if the message does not state a window in a known form. */
export function statedLimit(message: string): StatedLimit | undefined {
	const window = numberIn(message, WINDOWS)
	const request = numberIn(message, REQUESTS)
	return window === undefined ? undefined : { window, ...(request !== undefined && { request }) }
}

function numberIn(message: string, patterns: readonly RegExp[]): number | undefined {
	for (const pattern of patterns) {
		const found = Number(pattern.exec(message)?.[1]?.replaceAll(',', ''))
		if (found > 0) return found
	}
	return undefined
}
