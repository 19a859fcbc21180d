/** The parameters of tools in forms that servers accept: with common keywords only, and with names of few characters. */
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import { wireName } from '../wire-name.ts'
import { listIn } from './values.ts'

const ALLOWED = /^[a-zA-Z0-9_.-]{1,64}$/

/** The parameters of a tool with names that Anthropic accepts. Only top-level names are checked there. */
export function renamedParameters(parameters: Record<string, unknown>): Record<string, unknown> {
	const aliases = aliasesOf(parameters)
	if (aliases.size === 0) return parameters
	const renamed = (name: unknown): unknown => aliases.get(name as string) ?? name
	const properties = Object.entries(fieldsOf(parameters.properties)).map(([name, schema]) => [renamed(name), schema])
	return {
		...parameters,
		properties: Object.fromEntries(properties),
		...(Array.isArray(parameters.required) && { required: parameters.required.map(renamed) }),
	}
}

/** The arguments of a call with the original names of the parameters. */
export function originalArguments(parameters: Record<string, unknown>, args: string): string {
	const aliases = aliasesOf(parameters)
	const given = aliases.size > 0 ? jsonIn(args) : undefined
	if (!isObject(given)) return args
	const names = new Map([...aliases].map(([name, alias]) => [alias, name]))
	return JSON.stringify(Object.fromEntries(Object.entries(given).map(([key, value]) => [names.get(key) ?? key, value])))
}

/** The properties of a tool's parameters, including those of top-level alternatives. */
function propertiesOf({ anyOf, oneOf, allOf, properties }: Record<string, unknown>): Record<string, unknown> {
	const parts = [anyOf, oneOf, allOf].flatMap(listIn).map((part) => fieldsOf(part).properties)
	return Object.fromEntries([...parts, properties].flatMap((part) => Object.entries(fieldsOf(part))))
}

/** The replacements of names that are not allowed. */
function aliasesOf(parameters: Record<string, unknown>): Map<string, string> {
	const names = Object.keys(propertiesOf(parameters))
	const taken = new Set(names)
	const aliases = new Map<string, string>()
	for (const name of names) {
		if (ALLOWED.test(name)) continue
		let alias = wireName(name) || '_'
		// For example, `_top` exists besides `$top`.
		for (let n = 2; taken.has(alias); n++) alias = wireName(`${name}_${n}`)
		taken.add(alias)
		aliases.set(name, alias)
	}
	return aliases
}

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
