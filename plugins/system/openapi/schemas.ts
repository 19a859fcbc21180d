/** Converts joi schemas to JSON Schema 2020-12: joi's own translation, completed and corrected. */
import type { ObjectSchema, Schema } from 'joi'
import { isObject } from '../../../core/util/is-object.ts'
import type { About, JsonSchema } from './json-schema.ts'
import { correct, rulesOf, textRules } from './corrections.ts'

/** Adds schemas with a joi `id()`, and named responses, to the components once. Everywhere else they are references. */
export class Schemas {
	readonly components: Record<string, JsonSchema>
	readonly responses: Record<string, object> = {}

	/** `known`: existing components. */
	constructor(known: Record<string, JsonSchema>) {
		this.components = { ...known }
	}

	/** Returns an empty schema if the translation fails: one unusual schema must not break the whole document. */
	of(schema: Schema): JsonSchema {
		try {
			return this.#complete(translate(schema), schema.describe() as About)
		} catch {
			return {}
		}
	}

	/** The keys of an object, for parameters. */
	properties(schema: ObjectSchema): { name: string; required: boolean; schema: JsonSchema }[] {
		const { properties = {}, required = [] } = this.resolve(this.of(schema))
		return Object.entries(properties).map(([name, inner]) => ({
			name,
			required: required.includes(name),
			schema: inner,
		}))
	}

	/** The target of a reference. Returns other schemas unchanged. */
	resolve(schema: JsonSchema): JsonSchema {
		const name = schema.$ref?.replace('#/components/schemas/', '')
		return (name === undefined ? undefined : this.components[name]) ?? schema
	}

	/** Walks both trees at once. Parts that joi translates to another structure (`when`) stay unchanged. */
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

	/** Adds the rules for names, which joi's translation lacks if they are a schema. */
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

/** If two plugins use one name for different values, the second value stays inline. */
function share<T extends object>(
	section: string,
	known: Record<string, object>,
	name: string,
	value: T,
): T | { $ref: string } {
	if (JSON.stringify((known[name] ??= value)) !== JSON.stringify(value)) return value
	return { $ref: `#/components/${section}/${name}` }
}

/** Checks the shape, not the class: a third-party plugin may use its own joi, or a version without JSON Schema. */
export function isJoi(rules: unknown): rules is Schema {
	if (!isObject(rules) || !('describe' in rules)) return false
	return isObject(rules['~standard']) && 'jsonSchema' in rules['~standard']
}

function translate(schema: Schema): JsonSchema {
	const { $defs: _, ...json } = schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema
	correct(json)
	return json
}

/** The part with the rules of an object or array, which joi nests in `anyOf` if other types are allowed, too. */
function bodyOf(json: JsonSchema): JsonSchema {
	const isBody = (part: JsonSchema): boolean => Boolean(part.properties ?? part.items ?? part.patternProperties)
	return isBody(json) ? json : (json.anyOf?.find(isBody) ?? json)
}
