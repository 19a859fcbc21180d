/** Enough of JSON Schema 2020-12 to check what the API describes: whether a schema is one, and whether a value fits it. */
import type { JsonSchema } from '../../../plugins/system/openapi/schemas.ts'

const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

/** What is wrong with a schema itself, with where it stands; a keyword that this check does not know is wrong too. */
export function schemaProblems(schema: unknown, at = '#'): string[] {
	if (typeof schema === 'boolean') return []
	if (!isMap(schema)) return [`${at} is no schema`]
	return Object.entries(schema).flatMap(([word, value]) => {
		const where = `${at}/${word}`
		const isWrong = (ok: boolean): string[] => (ok ? [] : [`${where} is ${JSON.stringify(value)}`])
		switch (word) {
			case 'type':
				return isWrong([value].flat().every((one) => types.includes(String(one))))
			case 'properties':
			case 'patternProperties':
				if (!isMap(value)) return isWrong(false)
				return Object.entries(value).flatMap(([name, inner]) => schemaProblems(inner, `${where}/${name}`))
			case 'items':
			case 'not':
			case 'additionalProperties':
				return schemaProblems(value, where)
			case 'anyOf':
			case 'oneOf':
			case 'allOf':
				if (!Array.isArray(value) || value.length === 0) return isWrong(false)
				return value.flatMap((inner, index) => schemaProblems(inner, `${where}/${index}`))
			case 'required': {
				const known = isMap(schema.properties) ? schema.properties : undefined
				return isWrong(Array.isArray(value) && value.every((name) => !known || String(name) in known))
			}
			case 'dependentRequired':
				return isWrong(isMap(value) && Object.values(value).every(Array.isArray))
			case 'enum':
				return isWrong(Array.isArray(value) && new Set(value).size === value.length && value.length > 0)
			case 'examples':
				return isWrong(Array.isArray(value))
			case 'pattern':
				return isWrong(compiles(String(value)))
			case 'minimum':
			case 'maximum':
				return isWrong(typeof value === 'number')
			case 'minLength':
			case 'maxLength':
			case 'minItems':
			case 'maxItems':
			case 'minProperties':
			case 'maxProperties':
				return isWrong(Number.isInteger(value) && Number(value) >= 0)
			case 'uniqueItems':
				return isWrong(typeof value === 'boolean')
			case '$ref':
			case 'description':
			case 'format':
				return isWrong(typeof value === 'string')
			case 'default':
				return []
			default:
				return [`${where} is no keyword`]
		}
	})
}

/** True where the value fits. `lookup` answers what a `$ref` names. Formats and descriptions say nothing here. */
export function fits(value: unknown, schema: JsonSchema, lookup: (ref: string) => JsonSchema): boolean {
	const again = (inner: JsonSchema, part: unknown = value): boolean => fits(part, inner, lookup)
	const { type, properties = {}, required = [], additionalProperties, items } = schema
	if (schema.$ref !== undefined && !again(lookup(schema.$ref))) return false
	if (type !== undefined && ![type].flat().some((one) => isOf(value, one))) return false
	if (schema.enum && !schema.enum.includes(value)) return false
	if (schema.anyOf && !schema.anyOf.some((one) => again(one))) return false
	if (schema.oneOf && schema.oneOf.filter((one) => again(one)).length !== 1) return false
	if (schema.allOf && !schema.allOf.every((one) => again(one))) return false
	if (schema.not && again(schema.not)) return false
	if (typeof value === 'string') {
		if (typeof schema.pattern === 'string' && !new RegExp(schema.pattern, 'u').test(value)) return false
		return value.length >= Number(schema.minLength ?? 0) && value.length <= Number(schema.maxLength ?? Infinity)
	}
	if (typeof value === 'number')
		return value >= Number(schema.minimum ?? -Infinity) && value <= Number(schema.maximum ?? Infinity)
	if (Array.isArray(value)) {
		if (value.length < Number(schema.minItems ?? 0) || value.length > Number(schema.maxItems ?? Infinity)) return false
		if (schema.uniqueItems === true && new Set(value).size !== value.length) return false
		return !items || value.every((one) => again(items, one))
	}
	if (!isMap(value)) return true
	if (!required.every((name) => name in value)) return false
	for (const [name, needed] of Object.entries(schema.dependentRequired ?? {})) {
		if (name in value && !needed.every((one) => one in value)) return false
	}
	return Object.entries(value).every(([name, part]) => {
		const inner = properties[name]
		if (inner) return again(inner, part)
		if (isMap(additionalProperties)) return again(additionalProperties, part)
		return additionalProperties !== false || matchesPattern(name, schema)
	})
}

function matchesPattern(name: string, { patternProperties }: JsonSchema): boolean {
	return (
		isMap(patternProperties) && Object.keys(patternProperties).some((pattern) => new RegExp(pattern, 'u').test(name))
	)
}

function isOf(value: unknown, type: string): boolean {
	if (type === 'null') return value === null
	if (type === 'array') return Array.isArray(value)
	if (type === 'object') return isMap(value)
	if (type === 'integer') return Number.isInteger(value)
	return typeof value === type
}

function compiles(pattern: string): boolean {
	try {
		return Boolean(new RegExp(pattern, 'u'))
	} catch {
		return false
	}
}

function isMap(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}
