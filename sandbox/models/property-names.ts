/** Renames parameters of tools for servers that accept few characters: `$filter` becomes `_filter`. */
import { wireName } from '../wire-name.ts'
import { isObject, listIn, objectIn, parsed } from './values.ts'

const ALLOWED = /^[a-zA-Z0-9_.-]{1,64}$/

/** The parameters of a tool with names that Anthropic accepts. Only top-level names are checked there. */
export function renamedParameters(parameters: Record<string, unknown>): Record<string, unknown> {
	const aliases = aliasesOf(parameters)
	if (aliases.size === 0) return parameters
	const renamed = (name: unknown): unknown => aliases.get(name as string) ?? name
	const properties = Object.entries(objectIn(parameters.properties)).map(([name, schema]) => [renamed(name), schema])
	return {
		...parameters,
		properties: Object.fromEntries(properties),
		...(Array.isArray(parameters.required) && { required: parameters.required.map(renamed) }),
	}
}

/** The arguments of a call with the original names of the parameters. */
export function originalArguments(parameters: Record<string, unknown>, args: string): string {
	const aliases = aliasesOf(parameters)
	const given = aliases.size > 0 ? parsed(args) : undefined
	if (!isObject(given)) return args
	const names = new Map([...aliases].map(([name, alias]) => [alias, name]))
	return JSON.stringify(Object.fromEntries(Object.entries(given).map(([key, value]) => [names.get(key) ?? key, value])))
}

/** The properties of a tool's parameters, including those of top-level alternatives. */
export function propertiesOf({ anyOf, oneOf, allOf, properties }: Record<string, unknown>): Record<string, unknown> {
	const parts = [anyOf, oneOf, allOf].flatMap(listIn).map((part) => objectIn(part).properties)
	return Object.fromEntries([...parts, properties].flatMap((part) => Object.entries(objectIn(part))))
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
