/** Describes tools to a model, and parses the arguments of calls. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault, messageOf } from '../../core/errors.ts'
import type { ToolDefinition } from '../../core/plugin.ts'
import type { ToolSpec } from '../../core/protocol.ts'
import { isObject } from '../../core/util/is-object.ts'

const DESCRIPTION_LIMIT = 4096
/** For longer arguments only the first error is reported: reporting 100,000 errors would take a second. */
const ALL_ERRORS_LIMIT = 16 * 1024

const specs = new WeakMap<ToolDefinition, ToolSpec>()

/** Returns the same object for the same definition, so that values computed from it can be cached. */
export function specOf(tool: ToolDefinition): ToolSpec {
	let spec = specs.get(tool)
	if (!spec) {
		spec = {
			name: tool.name,
			description: tool.description.slice(0, DESCRIPTION_LIMIT),
			parameters: jsonSchemaOf(tool.parameters),
			...(tool.aliases && { aliases: tool.aliases }),
		}
		specs.set(tool, spec)
	}
	return spec
}

/** Whether its calls may run at the same time as others. */
export function isConcurrent({ concurrent, repeatable }: ToolDefinition): boolean {
	return concurrent ?? repeatable === true
}

/** Throws `invalid_arguments`; the message states what to send. */
export function parseArguments(tool: ToolDefinition, text: string): Record<string, unknown> {
	let value: unknown
	try {
		value = text.trim() === '' ? {} : JSON.parse(text)
	} catch (error) {
		throw new Fault(
			'invalid_arguments',
			`the arguments of ${tool.name} are not JSON (${messageOf(error)}); send one JSON object. You wrote: ${text}`,
		)
	}
	if (!isObject(value))
		throw new Fault('invalid_arguments', `the arguments of ${tool.name} must be one JSON object. You wrote: ${text}`)
	if (!Joi.isSchema(tool.parameters)) return value
	const checked = tool.parameters.validate(value, { abortEarly: text.length > ALL_ERRORS_LIMIT, convert: false })
	if (checked.error)
		throw new Fault('invalid_arguments', `the arguments of ${tool.name} are wrong: ${checked.error.message}`)
	return checked.value as Record<string, unknown>
}

const schemas = new WeakMap<object, Record<string, unknown>>()

/** Cached by schema: the conversion takes longer than the rest of composing an order. */
function jsonSchemaOf(parameters: ToolDefinition['parameters']): Record<string, unknown> {
	if (!parameters) return { type: 'object', properties: {}, additionalProperties: false }
	if (!Joi.isSchema(parameters)) return parameters as Record<string, unknown>
	let schema = schemas.get(parameters)
	if (!schema) {
		const { $schema: _, ...rest } = parameters['~standard'].jsonSchema.input({ target: 'draft-2020-12' })
		schemas.set(parameters, (schema = { ...withoutSizes(rest), additionalProperties: false }))
	}
	return schema
}

const SIZES = new Set(['minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems', 'pattern'])

/**
 * Removes lengths and patterns from a schema: they cost tokens in each request, and models hardly use them. A call that violates
 * one gets an error that names it. Descriptions mention the important ones.
 */
function withoutSizes(schema: Record<string, unknown>): Record<string, unknown> {
	const kept = Object.entries(schema).filter(([keyword, value]) => !SIZES.has(keyword) || typeof value === 'object')
	return Object.fromEntries(kept.map(([keyword, value]) => [keyword, shortened(value)]))
}

function shortened(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(shortened)
	return isObject(value) ? withoutSizes(value) : value
}
