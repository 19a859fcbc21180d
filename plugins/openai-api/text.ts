/** The text of a message's content; agents accept nothing else. */
import Joi from 'joi'
import { wrong } from './errors.ts'

export type Content = string | { type: string; text?: string; refusal?: string }[] | null | undefined

const kinds = new Set(['text', 'input_text', 'output_text', 'refusal'])

export const content = Joi.alternatives(
	Joi.string().allow(''),
	Joi.array().items(
		Joi.object({ type: Joi.string().max(64).required(), text: Joi.string().allow('') })
			.unknown()
			.description('A part of type text (input_text, output_text).'),
	),
).description('Text, or parts that are text.')

/** `param`: the location of the content, for errors. Throws `invalid_request` for parts that are not text. */
export function textOf(value: Content, param: string): string {
	if (typeof value === 'string') return value
	const texts = (value ?? []).map(({ type, text, refusal }, at) => {
		const words = type === 'refusal' ? refusal : text
		if (kinds.has(type) && typeof words === 'string') return words
		throw wrong(`${param}[${at}]`, `${param}[${at}] has the type "${type.slice(0, 64)}"; agents take text only`)
	})
	return texts.join('\n')
}
