import type { JsonSchema } from '../../config/json-schema.ts'

/** Whether a value is valid by a JSON Schema. Throws for an unknown keyword, so that none is ignored. */
export function fits(value: unknown, schema: JsonSchema, root: JsonSchema = schema): boolean {
	return Object.entries(schema).every(([keyword, limit]) => {
		const check = checks[keyword]
		if (!check) throw new Error(`the schema has an unknown keyword, or one that this check lacks: ${keyword}`)
		return check(value, limit as never, schema, root)
	})
}

type Check = (value: unknown, limit: never, schema: JsonSchema, root: JsonSchema) => boolean

const always = (): boolean => true

const checks: Partial<Record<string, Check>> = {
	$schema: always,
	$defs: always,
	title: always,
	description: always,
	default: always,
	format: always,
	$ref: (value, ref: string, _, root) => {
		const target = root.$defs?.[ref.replace('#/$defs/', '')]
		if (!target) throw new Error(`the schema refers to ${ref}, which does not exist`)
		return fits(value, target, root)
	},
	type: (value, types: string | string[]) =>
		[types].flat().some((type) => typeOf(value) === type || (type === 'number' && typeOf(value) === 'integer')),
	enum: (value, choices: unknown[]) => choices.includes(value),
	anyOf: (value, branches: JsonSchema[], _, root) => branches.some((branch) => fits(value, branch, root)),
	properties: (value, properties: Record<string, JsonSchema>, _, root) =>
		entries(value).every(([key, inner]) => !properties[key] || fits(inner, properties[key], root)),
	patternProperties: (value, patterns: Record<string, JsonSchema>, _, root) =>
		entries(value).every(([key, inner]) =>
			Object.entries(patterns).every(([pattern, schema]) => !matches(key, pattern) || fits(inner, schema, root)),
		),
	additionalProperties: (value, allowed: boolean, { properties = {}, patternProperties = {} }) =>
		allowed ||
		entries(value).every(
			([key]) => key in properties || Object.keys(patternProperties).some((pattern) => matches(key, pattern)),
		),
	required: (value, names: string[]) => !isMap(value) || names.every((name) => name in value),
	maxProperties: (value, most: number) => entries(value).length <= most,
	items: (value, schema: JsonSchema, _, root) =>
		!Array.isArray(value) || value.every((item) => fits(item, schema, root)),
	maxItems: (value, most: number) => !Array.isArray(value) || value.length <= most,
	minItems: (value, most: number) => !Array.isArray(value) || value.length >= most,
	uniqueItems: (value) => !Array.isArray(value) || new Set(value).size === value.length,
	minLength: (value, least: number) => typeof value !== 'string' || value.length >= least,
	maxLength: (value, most: number) => typeof value !== 'string' || value.length <= most,
	pattern: (value, pattern: string) => typeof value !== 'string' || matches(value, pattern),
	minimum: (value, least: number) => typeof value !== 'number' || value >= least,
	exclusiveMinimum: (value, least: number) => typeof value !== 'number' || value > least,
	maximum: (value, most: number) => typeof value !== 'number' || value <= most,
}

function typeOf(value: unknown): string {
	if (value === null) return 'null'
	if (Array.isArray(value)) return 'array'
	return Number.isInteger(value) ? 'integer' : typeof value
}

function isMap(value: unknown): value is Record<string, unknown> {
	return typeOf(value) === 'object'
}

function entries(value: unknown): [string, unknown][] {
	return isMap(value) ? Object.entries(value) : []
}

/** JSON Schema's patterns are ECMA-262 with the u flag. */
function matches(text: string, pattern: string): boolean {
	return new RegExp(pattern, 'u').test(text)
}
