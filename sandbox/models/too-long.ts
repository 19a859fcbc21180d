/** Whether a server refused a request because it is too long for its model: the only place that decides this. */

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

/** `code`: the server's own code or type. */
export function isTooLong(status: number, code: string, message: string): boolean {
	return status === 413 || CODE.test(code) || (STATUSES.includes(status) && saysTooLong(message))
}

/** Whether the message is about tokens. */
export function saysTooLong(message: string): boolean {
	return MESSAGE.test(message)
}

/** How many tokens the server says its model takes; undefined where it does not say. */
export function toldLimit(message: string): number | undefined {
	const stated = Number(/(?:maximum|limit|window|size)\D{0,40}?([\d,]{4,9})/i.exec(message)?.[1]?.replaceAll(',', ''))
	return stated > 0 ? stated : undefined
}
