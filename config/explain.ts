import { Fault } from '../core/errors.ts'
import type { Composition } from './composition.ts'
import { jsonSchema, ownOf } from './json-schema.ts'
import type { JsonSchema } from './json-schema.ts'
import { hintFor } from './suggest.ts'

/** The description of a setting. */
export interface Explanation {
	/** `<name>` represents names that the user chooses. */
	key: string
	meaning: string
	/** In words: `whole number from 0 to 65535`. */
	type: string
	/** Whether its value is text (or null), which needs no quotes on a command line. */
	isText: boolean
	/** A text if it is not a fixed value; absent if there is no default. */
	default?: unknown
	/** The names of the settings in a section or map. */
	settings?: string[]
}

/** `a."b.c".d` → its three names; none for an empty text. Throws `invalid_request` if a name is missing or a quote is not closed. */
export function pathOf(key: string): string[] {
	if (key !== '' && !/^(?:"[^"]*"|[^."]+)(?:\.(?:"[^"]*"|[^."]+))*$/.test(key))
		throw new Fault(
			'invalid_request',
			`${key} is not the name of a setting; write it like server.port, and a name with dots in quotes: providers."a.b".model`,
		)
	return [...key.matchAll(/"([^"]*)"|([^."]+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')
}

/** Throws `not_found` for a path that the schema does not have, with the one that was probably meant. */
export function explain(composition: Composition, path: readonly string[]): Explanation {
	let schema = jsonSchema(composition)
	const known: string[] = []
	for (const [depth, name] of path.entries()) {
		const inner = step(schema, name)
		if (!inner) throw unknown(path.slice(0, depth + 1), schema)
		known.push(inner.isOwn ? '<name>' : name)
		schema = inner.schema
	}
	const settings = namesIn(schema)
	const [, meaning = '', fallback] = /^(.*?)(?: Default (.*)\.)?$/s.exec(describe(schema)) ?? []
	const fixed = 'default' in schema ? schema.default : fallback
	return {
		key: known.join('.'),
		meaning: path.length === 0 ? 'The whole of gateway.yaml.' : meaning,
		type: typeOf(schema),
		isText: limitsOf(schema).every((one) => [one.type].flat().every((type) => type === 'string' || type === 'null')),
		...(fixed !== undefined && { default: fixed }),
		...(settings.length > 0 && { settings }),
	}
}

function describe({ description, anyOf = [] }: JsonSchema): string {
	return (
		description ??
		anyOf
			.map(describe)
			.filter((text) => text !== '')
			.join(' Or: ')
	)
}

/** The keys of all settings that are not sections, in the order of the schema. */
export function allKeys(composition: Composition): string[] {
	return keysIn(jsonSchema(composition), '')
}

function keysIn(schema: JsonSchema, prefix: string): string[] {
	const found: string[] = []
	for (const [name, inner] of Object.entries(schema.properties ?? {})) {
		const deeper = keysIn(inner, `${prefix}${name}.`)
		found.push(...(deeper.length > 0 ? deeper : [prefix + name]))
	}
	for (const inner of Object.values(schema.patternProperties ?? {})) {
		const branches = inner.anyOf ?? [inner]
		const deeper = new Set(branches.flatMap((one) => keysIn(one, `${prefix}<name>.`)))
		found.push(...(deeper.size === 0 || mayBeText(inner) ? [`${prefix}<name>`] : []), ...deeper)
	}
	return found
}

function mayBeText({ type, anyOf = [] }: JsonSchema): boolean {
	return type === 'string' || anyOf.some(mayBeText)
}

/** The schema of an inner setting. `isOwn`: whether the user chooses its name. */
function step(schema: JsonSchema, name: string): { schema: JsonSchema; isOwn: boolean } | undefined {
	const inner = ownOf(schema.properties, name)
	if (inner) return { schema: inner, isOwn: false }
	for (const [pattern, own] of Object.entries(schema.patternProperties ?? {}))
		if (new RegExp(pattern).test(name)) return { schema: own, isOwn: true }
	const found = (schema.anyOf ?? []).flatMap((branch) => step(branch, name) ?? [])
	const [first] = found
	if (first) return { schema: merged(found.map((one) => one.schema)), isOwn: first.isOwn }
	// Third-party plugins check their settings themselves.
	return schema.type === 'object' && schema.additionalProperties !== false && schema.properties
		? { schema: { description: "A setting of the plugin's own." }, isOwn: false }
		: undefined
}

function merged(schemas: JsonSchema[]): JsonSchema {
	const [first = {}] = schemas
	const description = [...new Set(schemas.map(describe))].join(' Or: ')
	return schemas.length === 1 ? first : { description, anyOf: schemas }
}

function unknown(path: readonly string[], parent: JsonSchema): Fault {
	const before = path.slice(0, -1).map((name) => `${name}.`)
	const hint = hintFor(path.at(-1) ?? '', namesIn(parent), before.join(''))
	return new Fault('not_found', `${path.join('.')} is not a setting${hint}`)
}

function namesIn(schema: JsonSchema): string[] {
	const own = Object.keys(schema.patternProperties ?? {}).map(() => '<name>')
	return [...new Set([...Object.keys(schema.properties ?? {}), ...own, ...(schema.anyOf ?? []).flatMap(namesIn)])]
}

/** The alternatives of a setting, without references to the environment, which every setting allows. */
function limitsOf(schema: JsonSchema): JsonSchema[] {
	return schema.anyOf ? schema.anyOf.filter((one) => one.$ref === undefined).flatMap(limitsOf) : [schema]
}

function typeOf(schema: JsonSchema): string {
	return [...new Set(limitsOf(schema).map(wordsOf))].join(', or ')
}

function wordsOf({ type, enum: choices, minimum, maximum, items, maxLength }: JsonSchema): string {
	if (choices) return choices.map(String).join(' | ')
	const types = [type].flat()
	const orNull = types.includes('null') && !types.includes('object') && !types.includes('array') ? ', or null' : ''
	const [main] = types
	if (main === 'integer' || main === 'number') {
		const range = minimum !== undefined && maximum !== undefined ? ` from ${minimum} to ${maximum}` : ''
		return `${main === 'integer' ? 'whole number' : 'number'}${range}${orNull}`
	}
	if (main === 'boolean') return 'true | false'
	if (main === 'array') return `list of ${items ? typeOf(items) : 'values'}`
	if (main === 'object') return 'map of settings'
	return `text${maxLength === undefined ? '' : ` of at most ${maxLength} characters`}${orNull}`
}
