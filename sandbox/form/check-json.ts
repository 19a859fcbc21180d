/** Validates a value with a JSON Schema without generating code, since neither is trusted. */
import { isObject } from '../../core/util/is-object.ts'

/** Limit of the listed problems: a model needs no more to correct its answer. */
const PROBLEMS = 5
/** Schemas that refer to each other could cause endless work. Anything that was not checked counts as valid. */
const CHECKS = 100_000
/** This many characters or entries count as one more check. */
const SIZE_PER_CHECK = 20
const DEPTH = 100

const types: ReadonlySet<string> = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])
/** Keywords that can make a value invalid but are not checked: a pattern could run forever, and the others are rare. */
const unchecked = [
	'$dynamicRef',
	'$recursiveRef',
	'contains',
	'dependencies',
	'dependentRequired',
	'dependentSchemas',
	'format',
	'if',
	'pattern',
	'patternProperties',
	'propertyNames',
	'unevaluatedItems',
	'unevaluatedProperties',
	'uniqueItems',
]

type Schema = Record<string, unknown>

interface SchemaCheck {
	root: unknown
	/** Resolved references. */
	known: Map<string, unknown>
	problems: string[]
	left: number
	/** Something was not checked. If there are no problems, the value may be valid or not. */
	isPartial: boolean
}

/**
 * At most five sentences about what is wrong with the value; none if it is valid. Supports types, `enum`, `const`, objects,
 * arrays, bounds of lengths and numbers, `anyOf`, `oneOf`, `allOf`, `not`, `nullable` as in OpenAPI, and local references. Other
 * keywords, and types that JSON Schema does not have, never make a value invalid.
 */
export function problemsIn(value: unknown, schema: unknown): string[] {
	const check: SchemaCheck = { root: schema, known: new Map(), problems: [], left: CHECKS, isPartial: false }
	visit(check, value, schema, '', 0)
	return check.problems.slice(0, PROBLEMS)
}

function visit(check: SchemaCheck, value: unknown, schema: unknown, path: string, depth: number): void {
	if (schema === false) return say(check, path, 'is not allowed')
	if (!isObject(schema) || check.problems.length >= PROBLEMS) return
	const isTooMuch = check.left <= 0 || depth > DEPTH
	check.isPartial ||= isTooMuch || isPartly(schema)
	if (isTooMuch) return
	const { type, enum: listed, required } = schema
	check.left -=
		1 + [value, type, listed, required].reduce<number>((sum, part) => sum + sizeOf(part), 0) / SIZE_PER_CHECK
	const at = (more: string): string => (path === '' ? more : `${path}.${more}`)
	const below = (inner: unknown, innerSchema: unknown, where: string): void =>
		visit(check, inner, innerSchema, where, depth + 1)

	if (typeof schema.$ref === 'string') {
		const target = referred(check, schema.$ref)
		check.isPartial ||= target === undefined
		below(value, target, path)
	}
	if (!hasType(value, schema)) return say(check, path, `must be ${[schema.type].flat().join(' or ')}`)
	if (Array.isArray(schema.enum) && !schema.enum.some((one) => isSame(one, value)))
		say(check, path, `must be one of ${shown(schema.enum)}`)
	if ('const' in schema && !isSame(schema.const, value)) say(check, path, `must be ${shown(schema.const)}`)
	for (const one of listOf(schema.allOf)) below(value, one, path)
	choose(check, value, schema, path, depth)

	if (typeof value === 'string') checkRange(check, path, lengthOf(value), schema, 'Length', 'characters')
	if (typeof value === 'number') checkNumber(check, path, value, schema)
	if (Array.isArray(value)) {
		checkRange(check, path, value.length, schema, 'Items', 'items')
		const first = listOf(schema.prefixItems)
		for (const [n, inner] of value.entries()) below(inner, n < first.length ? first[n] : schema.items, at(String(n)))
	}
	if (!isObject(value)) return
	checkRange(check, path, Object.keys(value).length, schema, 'Properties', 'fields')
	const known = isObject(schema.properties) ? schema.properties : {}
	for (const name of listOf(schema.required))
		if (typeof name === 'string' && !Object.hasOwn(value, name)) say(check, at(name), 'is missing')
	for (const [name, inner] of Object.entries(value)) {
		if (Object.hasOwn(known, name)) below(inner, known[name], at(name))
		else if (!isObject(schema.patternProperties)) below(inner, schema.additionalProperties, at(name))
	}
}

/** `anyOf`, `oneOf` and `not`. */
function choose(check: SchemaCheck, value: unknown, schema: Schema, path: string, depth: number): void {
	const judge = (one: unknown): 'fits' | 'may fit' | 'does not fit' => {
		const inner: SchemaCheck = { ...check, problems: [], isPartial: false }
		visit(inner, value, one, path, depth + 1)
		check.left = inner.left
		if (inner.problems.length > 0) return 'does not fit'
		check.isPartial ||= inner.isPartial
		return inner.isPartial ? 'may fit' : 'fits'
	}
	const any = listOf(schema.anyOf)
	if (any.length > 0 && any.every((one) => judge(one) === 'does not fit'))
		say(check, path, `must fit one of the ${any.length} schemas of anyOf`)
	const judged = listOf(schema.oneOf).map(judge)
	const fitting = judged.filter((one) => one === 'fits').length
	if (judged.length > 0 && (fitting > 1 || (fitting === 0 && !judged.includes('may fit'))))
		say(check, path, `must fit exactly one schema of oneOf`)
	if (schema.not !== undefined && judge(schema.not) === 'fits') say(check, path, 'must not fit the schema of not')
}

/** Whether the schema has keywords that are not checked. */
function isPartly(schema: Schema): boolean {
	return (
		unchecked.some((name) => Object.hasOwn(schema, name)) ||
		Array.isArray(schema.items) ||
		!typesOf(schema).every((type) => types.has(type))
	)
}

function checkRange(check: SchemaCheck, path: string, size: number, schema: Schema, name: string, unit: string): void {
	const [least, most] = [schema[`min${name}`], schema[`max${name}`]]
	if (typeof least === 'number' && size < least) say(check, path, `must have at least ${least} ${unit}`)
	if (typeof most === 'number' && size > most) say(check, path, `must have at most ${most} ${unit}`)
}

function checkNumber(check: SchemaCheck, path: string, value: number, schema: Schema): void {
	const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf: step } = schema
	if (typeof minimum === 'number' && value < minimum) say(check, path, `must be at least ${minimum}`)
	if (typeof maximum === 'number' && value > maximum) say(check, path, `must be at most ${maximum}`)
	if (typeof above === 'number' && value <= above) say(check, path, `must be more than ${above}`)
	if (typeof below === 'number' && value >= below) say(check, path, `must be less than ${below}`)
	if (typeof step !== 'number' || step <= 0) return
	const parts = value / step
	if (Math.abs(parts - Math.round(parts)) > 1e-9) say(check, path, `must be a multiple of ${step}`)
}

function typesOf({ type }: Schema): string[] {
	return [type].flat().filter((one) => typeof one === 'string')
}

function hasType(value: unknown, schema: Schema): boolean {
	const wanted = typesOf(schema)
	if (wanted.length === 0 || !wanted.every((type) => types.has(type)) || (value === null && schema.nullable === true))
		return true
	return wanted.some((one) => isOf(value, one))
}

function isOf(value: unknown, type: string): boolean {
	switch (type) {
		case 'null':
			return value === null
		case 'array':
			return Array.isArray(value)
		case 'object':
			return isObject(value)
		case 'integer':
			return Number.isInteger(value)
		default:
			return typeof value === type
	}
}

/** Resolves a reference. Undefined for one to another document, to an anchor or to nothing: it allows everything. */
function referred({ root, known }: SchemaCheck, ref: string): unknown {
	if (known.has(ref)) return known.get(ref)
	let found = /^#(\/|$)/.test(ref) ? root : undefined
	for (const part of ref.slice(1).split('/').slice(1)) {
		const name = decode(part).replaceAll('~1', '/').replaceAll('~0', '~')
		found =
			isObject(found) && Object.hasOwn(found, name)
				? found[name]
				: Array.isArray(found)
					? found[Number(name)]
					: undefined
	}
	known.set(ref, found)
	return found
}

/** The number of characters or entries that a check may read. */
function sizeOf(value: unknown): number {
	if (typeof value === 'string' || Array.isArray(value)) return value.length
	return isObject(value) ? Object.keys(value).length : 0
}

function decode(text: string): string {
	try {
		return decodeURIComponent(text)
	} catch {
		return text
	}
}

/** In code points, as the standard counts. */
function lengthOf(text: string): number {
	return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0)
}

function isSame(a: unknown, b: unknown): boolean {
	if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => isSame(item, b[at]))
	if (!isObject(a) || !isObject(b)) return a === b
	const names = Object.keys(a)
	return (
		names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
	)
}

function listOf(value: unknown): unknown[] {
	return Array.isArray(value) ? value : []
}

function shown(value: unknown): string {
	return JSON.stringify(value).slice(0, 200)
}

function say({ problems }: SchemaCheck, path: string, what: string): void {
	problems.push(`${path === '' ? 'the value' : path.slice(0, 200)} ${what}`)
}
