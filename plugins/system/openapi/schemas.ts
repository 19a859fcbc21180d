/** From joi to JSON Schema 2020-12: joi's own translation, with additions and corrections. */
import type { ObjectSchema, Schema } from 'joi'
import { rulesOf } from './dependencies.ts'
import { isObject } from '../../../core/util/is-object.ts'
import type { About, JsonSchema } from './json-schema.ts'
import { correct, textRules } from './corrections.ts'

/** Schemas with a joi `id()` are added to `components` once, and referenced everywhere else; so are responses with a name. */
export class Schemas {
	readonly components: Record<string, JsonSchema>
	readonly responses: Record<string, object> = {}

	/** `known`: existing components. */
	constructor(known: Record<string, JsonSchema>) {
		this.components = { ...known }
	}

	/** Returns an empty schema if the translation fails: one odd route must not break the whole description. */
	of(schema: Schema): JsonSchema {
		try {
			return this.#complete(translate(schema), schema.describe() as About)
		} catch {
			return {}
		}
	}

	/** The keys of an object, for parameters; each with whether it is required. */
	properties(schema: ObjectSchema): { name: string; required: boolean; schema: JsonSchema }[] {
		const { properties = {}, required = [] } = this.resolve(this.of(schema))
		return Object.entries(properties).map(([name, inner]) => ({
			name,
			required: required.includes(name),
			schema: inner,
		}))
	}

	/** The target of a reference; any other schema as it is. */
	resolve(schema: JsonSchema): JsonSchema {
		const name = schema.$ref?.replace('#/components/schemas/', '')
		return (name === undefined ? undefined : this.components[name]) ?? schema
	}

	/** Walks both trees at once; where joi's translation has another shape (`when`), it stays as it is. */
	#complete(translated: JsonSchema, about: About): JsonSchema {
		const { keys, items, matches, patterns, dependencies, examples, flags, tags } = about
		const json = about.type === 'string' ? textRules(translated, about) : translated
		const body = bodyOf(json)
		if (keys && body.properties) this.#completeKeys(body.properties, keys)
		if (patterns && !keys) this.#completePatterns(body, patterns)
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
		if (tags?.includes('deprecated')) json.deprecated = true
		return flags?.id === undefined ? json : share('schemas', this.components, flags.id, json)
	}

	/** Returns a reference to the response. */
	shareResponse(name: string, response: Record<string, unknown>): Record<string, unknown> {
		return share('responses', this.responses, name, response)
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

	/** joi does not describe rules for names that are a schema of their own. */
	#completePatterns(json: JsonSchema, patterns: NonNullable<About['patterns']>): void {
		const [only] = patterns
		const values = json.patternProperties?.['.*']
		if (patterns.length > 1 || !only?.schema || !values) return
		delete json.patternProperties
		json.additionalProperties = this.#complete(values, only.rule)
		const names = textRules({}, only.schema)
		if (Object.keys(names).length > 0) json.propertyNames = names
	}
}

/** Two plugins may use one name for different things: the second one then stays inline. */
function share<T extends object>(
	section: string,
	known: Record<string, object>,
	name: string,
	value: T,
): T | { $ref: string } {
	if (JSON.stringify((known[name] ??= value)) !== JSON.stringify(value)) return value
	return { $ref: `#/components/${section}/${name}` }
}

/** By its shape: a third party may bring its own joi, also a version that lacks this description. */
export function isJoi(rules: unknown): rules is Schema {
	if (!isObject(rules) || !('describe' in rules)) return false
	return isObject(rules['~standard']) && 'jsonSchema' in rules['~standard']
}

function translate(schema: Schema): JsonSchema {
	const { $defs: _, ...json } = schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema
	correct(json)
	return json
}

/** If other types are allowed too, joi wraps the rules of the type itself. */
function bodyOf(json: JsonSchema): JsonSchema {
	const isBody = (one: JsonSchema): boolean => Boolean(one.properties ?? one.items ?? one.patternProperties)
	return isBody(json) ? json : (json.anyOf?.find(isBody) ?? json)
}
