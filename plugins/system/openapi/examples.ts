import type { JsonSchema } from './json-schema.ts'
import type { Schemas } from './schemas.ts'

const A_TIME = '2030-01-31T12:00:00.000Z'
const AN_ID = '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05'
/** Ends recursive schemas. */
const DEPTH_LIMIT = 16

/**
 * An example of a schema: its own, or one composed of the examples of its parts. Undefined if a required part has none, since an
 * invented text would not help readers.
 */
export function exampleOf(schema: JsonSchema, schemas: Schemas, depth = 0): unknown {
	if (depth > DEPTH_LIMIT) return undefined
	const json = schemas.resolve(schema)
	const within = (inner: JsonSchema): unknown => exampleOf(inner, schemas, depth + 1)
	if (json.examples && json.examples.length > 0) return json.examples[0]
	if (json.default !== undefined) return json.default
	if (json.enum) return json.enum[0]
	const [branch] = json.anyOf ?? json.oneOf ?? []
	if (branch && !json.properties) return within(branch)
	const types = [json.type].flat()
	if (types.includes('object') && json.properties) return objectOf(json, within)
	if (types.includes('null')) return null
	return plainOf(json, types[0], within)
}

/** With the required keys, and the optional keys that have an example. */
function objectOf({ properties = {}, required = [] }: JsonSchema, within: (inner: JsonSchema) => unknown): unknown {
	const entries = Object.entries(properties)
		.filter(([name, inner]) => required.includes(name) || inner.examples)
		.map(([name, inner]) => [name, within(inner)] as const)
	return entries.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(entries)
}

function plainOf(json: JsonSchema, type: string | undefined, within: (inner: JsonSchema) => unknown): unknown {
	switch (type) {
		case 'array': {
			const item = json.items && within(json.items)
			return item === undefined && (Number(json.minItems) || 0) === 0 ? [] : item === undefined ? undefined : [item]
		}
		case 'object':
			return {}
		case 'boolean':
			return false
		case 'integer':
		case 'number':
			return json.minimum ?? 0
		case 'string':
			return json.format === 'date-time' ? A_TIME : json.format === 'uuid' ? AN_ID : undefined
		default:
			return undefined
	}
}
