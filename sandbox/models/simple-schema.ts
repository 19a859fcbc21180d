import { propertiesOf, renamedParameters } from './property-names.ts'
import { isObject } from './values.ts'

const KEYWORDS = new Set(['type', 'description', 'properties', 'required', 'items', 'enum', 'anyOf', 'nullable'])
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/**
 * A tool's parameters as a JSON Schema with only the keywords that every server supports; it may accept more than the original.
 * Top-level alternatives, which some servers refuse, become one object with the properties of all.
 */
export function simpleParameters(parameters: Record<string, unknown>): Record<string, unknown> {
	const {
		enum: _,
		anyOf: _alternatives,
		...schema
	} = simpleSchema({ ...parameters, type: 'object', properties: propertiesOf(parameters) })
	return renamedParameters(schema)
}

function simpleSchema(schema: unknown): Record<string, unknown> {
	if (!isObject(schema)) return { type: 'object' }
	const { oneOf, type, const: only } = schema
	const known = Object.entries({
		...(Array.isArray(oneOf) && { anyOf: oneOf }),
		...(only !== undefined && { enum: [only] }),
		...schema,
	}).filter(([key]) => KEYWORDS.has(key))
	const simple: Record<string, unknown> = Object.fromEntries(
		known.map(([key, value]) => {
			if (key === 'properties' && isObject(value)) return [key, each(value)]
			if (key === 'items') return [key, Array.isArray(value) ? {} : simpleSchema(value)]
			if (key === 'anyOf' && Array.isArray(value)) return [key, value.map(simpleSchema)]
			// `type: [string, "null"]`
			if (key === 'type' && Array.isArray(type)) return [key, type.find((one) => one !== 'null') ?? 'string']
			return [key, value]
		}),
	)
	if (!TYPES.has(simple.type)) delete simple.type
	return simple.type === 'array' ? { items: {}, ...simple } : simple
}

function each(properties: Record<string, unknown>): Record<string, unknown> {
	return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, simpleSchema(schema)]))
}
