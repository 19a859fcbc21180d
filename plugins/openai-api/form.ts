/** The form of the answer that a request requires: JSON, or a call of one of its tools. */
import { fieldsOf } from '../../core/util/is-object.ts'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { AnswerForm, JsonForm } from '../../sandbox/order.ts'
import { paramError } from './errors.ts'
import { identifier } from './fields.ts'
import type { ClientTool } from './tools.ts'

/** Length of a schema as JSON. Every request to the model contains the schema. */
const SCHEMA_LIMIT = 32 * 1024

const jsonFields = {
	name: identifier.description('For the model.'),
	description: Joi.string().allow('', null).max(16_384).description('For the model.'),
	schema: Joi.object()
		.unknown()
		.custom((value: unknown, helpers) =>
			JSON.stringify(value).length <= SCHEMA_LIMIT
				? value
				: helpers.message({ custom: `{#label} must be at most ${SCHEMA_LIMIT / 1024} KiB of JSON` }),
		)
		.description('JSON Schema of the answer. `pattern` and `format` are not checked.'),
	strict: Joi.boolean().allow(null).description('Passed to the model.'),
}
const type = Joi.valid('text', 'json_object', 'json_schema').required()
const what = 'JSON instead of text. The answer is validated; if it is invalid, the model is asked again, up to twice.'

/** The field `response_format` of a chat completion. */
export const responseFormat = Joi.object({
	type,
	json_schema: Joi.object({ ...jsonFields, name: jsonFields.name.required() }).when('type', {
		is: 'json_schema',
		// oxlint-disable-next-line unicorn/no-thenable -- joi's word
		then: Joi.required(),
	}),
	schema: jsonFields.schema.when('type', {
		not: 'json_object',
		// oxlint-disable-next-line unicorn/no-thenable -- joi's word
		then: Joi.forbidden(),
	}),
})
	.allow(null)
	.description(what)

/** The field `text.format` of a response. */
export const textFormat = Joi.object({ type, ...jsonFields })
	.when(Joi.object({ type: 'json_schema' }).unknown(), {
		// oxlint-disable-next-line unicorn/no-thenable -- joi's word
		then: Joi.object({ name: Joi.required(), schema: Joi.required() }),
	})
	.allow(null)
	.description(what)

export interface JsonFields {
	name?: string
	description?: string | null
	schema?: Record<string, unknown> | undefined
	strict?: boolean | null
}

/** The JSON that a `format` requires; undefined for text. */
export function jsonOf(format: ({ type: string } & JsonFields) | null | undefined): JsonForm | undefined {
	if (!format || format.type === 'text') return undefined
	const { name = 'answer', description, schema, strict } = format
	if (format.type === 'json_object') return { name: 'answer', ...(schema && { schema }) }
	return {
		name,
		...(description && { description }),
		...(schema && { schema }),
		...(typeof strict === 'boolean' && { strict }),
	}
}

/** A tool choice of either API. */
export type ToolChoice = 'auto' | 'none' | 'required' | { type: string; [field: string]: unknown } | null

/**
 * The tools to offer, and in `call` the tools of which one must be called. Throws `invalid_request` if the choice names a function
 * that the request does not have.
 */
export function chooseTools(
	tools: readonly ClientTool[],
	choice: ToolChoice | undefined,
): { offered: readonly ClientTool[]; call?: string[] } {
	if (choice === undefined || choice === null || choice === 'auto') return { offered: tools }
	if (choice === 'none') return { offered: [] }
	if (choice === 'required') return forced(tools)
	if (choice.type === 'function') return forced(only(tools, [choice]))
	if (choice.type === 'allowed_tools') {
		const { mode, tools: allowed } = fieldsOf(choice.allowed_tools ?? choice)
		if (!Array.isArray(allowed)) throw paramError('tool_choice', 'tool_choice lacks tools, the list of allowed tools')
		const offered = only(tools, allowed)
		return mode === 'required' ? forced(offered) : { offered }
	}
	throw paramError(
		'tool_choice',
		'tool_choice must be auto, none, required, a function, or allowed_tools with functions',
	)
}

function forced(offered: readonly ClientTool[]): { offered: readonly ClientTool[]; call: string[] } {
	if (offered.length === 0)
		throw paramError('tool_choice', 'tool_choice requires a call, but tools contains no function')
	return { offered, call: offered.map(({ name }) => name) }
}

function only(tools: readonly ClientTool[], named: readonly unknown[]): ClientTool[] {
	return named.map((entry) => {
		const { name, function: inner } = fieldsOf(entry)
		const wanted = fieldsOf(inner).name ?? name
		const tool = tools.find((tool) => tool.name === wanted)
		if (tool) return tool
		throw paramError(
			'tool_choice',
			`tool_choice names "${String(wanted).slice(0, 64)}", which is not a function in tools`,
		)
	})
}

/** Instructions for the model, since not every provider supports forms. */
export function instructionsFor({ json, call }: AnswerForm = {}): string | null {
	if (call) return `Answer with a call of the tool ${call.join(' or ')}.`
	if (!json) return null
	const { description, schema } = json
	return [
		'Your final answer is read by a program: it must be one JSON value, without words around it and without a code block.',
		...(description === undefined ? [] : [`It is: ${description}`]),
		schema ? `It must match this JSON Schema:\n${JSON.stringify(schema)}` : 'It must be a JSON object.',
	].join('\n')
}
