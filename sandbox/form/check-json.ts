/** Checks a value by a JSON Schema, without code made of it: both may come from strangers. */
import { isObject } from '../models/values.ts'

/** Problems that are listed: a model needs no more to write its answer again. */
const PROBLEMS = 5
/** Schemas that refer to each other can ask for endless work; what was not checked then counts as valid. */
const CHECKS = 100_000
/** Characters and entries that a check looks through count as one more. */
const LOOKED_THROUGH = 20
const DEPTH = 100

const types: ReadonlySet<string> = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])
/** Keywords that can make a value invalid, and are not checked: a pattern could take forever, and the others are rare. */
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
	/** What references lead to. */
	known: Map<string, unknown>
	problems: string[]
	left: number
	/** Something was not checked, so without problems the value may fit or not. */
	isPartial: boolean
}

/**
 * What is wrong with the value, at most five sentences; none if it fits. Understands types, `enum`, `const`, objects, lists,
 * bounds of lengths and numbers, `anyOf`, `oneOf`, `allOf`, `not`, `nullable` as in OpenAPI, and local references. Other
 * keywords, and types that JSON Schema does not have, never make a value wrong.
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
	check.left -= 1 + [value, type, listed, required].reduce<number>((sum, one) => sum + sizeOf(one), 0) / LOOKED_THROUGH
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

/** It has more than is checked here. */
function isPartly(schema: Schema): boolean {
	return (
		unchecked.some((name) => Object.hasOwn(schema, name)) ||
		Array.isArray(schema.items) ||
		!typesOf(schema).every(isKnown)
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

function isKnown(type: string): boolean {
	return types.has(type)
}

function hasType(value: unknown, schema: Schema): boolean {
	const wanted = typesOf(schema)
	if (wanted.length === 0 || !wanted.every(isKnown) || (value === null && schema.nullable === true)) return true
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

/** Undefined for a reference to another document, to an anchor or to nothing: it allows everything. */
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

/** Of what a check may look through. */
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

function isSame(one: unknown, other: unknown): boolean {
	if (Array.isArray(one) && Array.isArray(other))
		return one.length === other.length && one.every((item, at) => isSame(item, other[at]))
	if (!isObject(one) || !isObject(other)) return one === other
	const names = Object.keys(one)
	return (
		names.length === Object.keys(other).length &&
		names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
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
