/** From joi to JSON Schema 2020-12: joi's own translation, and what that leaves out or gets wrong. */
import type { Description, ObjectSchema, Schema } from 'joi'

export interface JsonSchema {
	type?: string | string[]
	description?: string
	properties?: Record<string, JsonSchema>
	required?: string[]
	additionalProperties?: boolean | JsonSchema
	items?: JsonSchema
	enum?: unknown[]
	anyOf?: JsonSchema[]
	oneOf?: JsonSchema[]
	allOf?: JsonSchema[]
	not?: JsonSchema
	dependentRequired?: Record<string, string[]>
	examples?: unknown[]
	$ref?: string
	$defs?: Record<string, JsonSchema>
	[keyword: string]: unknown
}

/** As much of what joi says of itself as is needed here. */
interface About extends Description {
	flags?: { id?: string; unknown?: boolean; presence?: string }
	keys?: Record<string, About>
	items?: About[]
	matches?: { schema?: About }[]
	dependencies?: { rel: string; key?: string; peers: unknown[] }[]
	examples?: unknown[]
}

/** Schemas with a joi `id()` go to `components` once, and are referred to wherever they stand. */
export class Schemas {
	readonly components: Record<string, JsonSchema>

	/** `known`: components that are there already. */
	constructor(known: Record<string, JsonSchema>) {
		this.components = { ...known }
	}

	of(schema: Schema): JsonSchema {
		return this.#complete(translate(schema), schema.describe() as About)
	}

	/** The keys of an object, for parameters; each with whether it is required. */
	properties(schema: ObjectSchema): { name: string; required: boolean; schema: JsonSchema }[] {
		const { flags, ...about } = schema.describe() as About
		const { id: _, ...rest } = flags ?? {}
		const { properties = {}, required = [] } = this.#complete(translate(schema), { ...about, flags: rest })
		return Object.entries(properties).map(([name, inner]) => ({
			name,
			required: required.includes(name),
			schema: inner,
		}))
	}

	/** Walks both trees at once; where joi's translation has another shape (`when`), it stays as it is. */
	#complete(json: JsonSchema, about: About): JsonSchema {
		const { keys, items, matches, dependencies, examples, flags } = about
		const body = bodyOf(json)
		if (keys && body.properties) this.#completeKeys(body.properties, keys)
		if (flags?.unknown) body.additionalProperties = true
		if (items && body.items) body.items = this.#completeItems(body.items, items)
		if (dependencies && body.properties) body.allOf = rulesOf(dependencies, [body.type].flat().includes('null'))
		for (const word of ['anyOf', 'oneOf', 'allOf'] as const) {
			const branches = json[word]
			if (matches?.every((match) => match.schema) && branches?.length === matches.length) {
				json[word] = branches.map((branch, index) => this.#complete(branch, matches[index]?.schema ?? {}))
			}
		}
		if (examples) json.examples = examples
		return flags?.id === undefined ? json : this.#share(flags.id, json)
	}

	#completeKeys(properties: Record<string, JsonSchema>, keys: Record<string, About>): void {
		for (const [key, about] of Object.entries(keys)) {
			const inner = properties[key]
			if (about.flags?.presence === 'forbidden') delete properties[key]
			else if (inner) properties[key] = this.#complete(inner, about)
		}
	}

	#completeItems(json: JsonSchema, items: About[]): JsonSchema {
		const [only] = items
		if (items.length === 1 && only) return this.#complete(json, only)
		return { ...json, anyOf: (json.anyOf ?? []).map((branch, index) => this.#complete(branch, items[index] ?? {})) }
	}

	/** Two plugins may use one name for different things: the second then stays where it is. */
	#share(id: string, json: JsonSchema): JsonSchema {
		const known = this.components[id]
		if (known && JSON.stringify(known) !== JSON.stringify(json)) return json
		this.components[id] = json
		return { $ref: `#/components/schemas/${id}` }
	}
}

function translate(schema: Schema): JsonSchema {
	const { $defs: _, ...json } = schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema
	mend(json)
	return json
}

/** What is wrong wherever it stands. */
function mend(json: JsonSchema): void {
	// joi allows null by its type alone, and then the enum forbids it again.
	if (json.enum && [json.type].flat().includes('null') && !json.enum.includes(null)) json.enum.push(null)
	// joi marks "as its keys say" by a symbol.
	if (typeof json.default === 'symbol') delete json.default
	if (json.$ref) json.$ref = json.$ref.replace('#/$defs/', '#/components/schemas/')
	for (const value of Object.values(json)) {
		for (const inner of Array.isArray(value) ? value : [value]) if (isMap(inner)) mend(inner)
	}
}

/** Where other types are allowed too, joi wraps what it says of the type itself. */
function bodyOf(json: JsonSchema): JsonSchema {
	return json.properties || json.items
		? json
		: (json.anyOf?.find((branch) => branch.properties ?? branch.items) ?? json)
}

type Dependencies = NonNullable<About['dependencies']>

/** joi's rules between the keys of one object. */
function rulesOf(dependencies: Dependencies, orNull: boolean): JsonSchema[] {
	const rules = dependencies.flatMap(dependencyOf)
	// `required` says nothing about null, so of two of them null would fit both.
	return orNull ? rules.map((rule) => ({ anyOf: [{ type: 'null' }, rule] })) : rules
}

/** Rules that look deeper into the object have no counterpart. */
function dependencyOf({ rel, key, peers }: Dependencies[number]): JsonSchema[] {
	const names = peers.filter((peer): peer is string => typeof peer === 'string' && !peer.includes('.'))
	if (names.length !== peers.length) return []
	const present = names.map((name): JsonSchema => ({ required: [name] }))
	switch (rel) {
		case 'or':
			return [{ anyOf: present }]
		case 'xor':
			return [{ oneOf: present }]
		case 'oxor':
			return [{ oneOf: [...present, { not: { anyOf: present } }] }]
		case 'nand':
			return [{ not: { required: names } }]
		case 'and':
			return [
				{ dependentRequired: Object.fromEntries(names.map((name) => [name, names.filter((one) => one !== name)])) },
			]
		case 'with':
			return key === undefined ? [] : [{ dependentRequired: { [key]: names } }]
		case 'without':
			return key === undefined ? [] : names.map((name) => ({ not: { required: [key, name] } }))
		default:
			return []
	}
}

function isMap(value: unknown): value is JsonSchema {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}
