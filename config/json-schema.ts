import type { Composition } from './composition.ts'

/** As much of JSON Schema 2020-12 as the schema of gateway.yaml uses. */
export interface JsonSchema {
	$schema?: string
	$defs?: Record<string, JsonSchema>
	$ref?: string
	title?: string
	description?: string
	default?: unknown
	type?: string | string[]
	enum?: unknown[]
	anyOf?: JsonSchema[]
	properties?: Record<string, JsonSchema>
	patternProperties?: Record<string, JsonSchema>
	additionalProperties?: boolean
	required?: string[]
	items?: JsonSchema
	minLength?: number
	maxLength?: number
	minimum?: number
	maximum?: number
	minItems?: number
	maxItems?: number
	maxProperties?: number
	uniqueItems?: boolean
	pattern?: string
	format?: string
}

/** A property by a name from outside: `toString` must find nothing. */
export function ownOf(properties: JsonSchema['properties'], name: string | number): JsonSchema | undefined {
	return properties && Object.hasOwn(properties, name) ? properties[name] : undefined
}

const reference = { $ref: '#/$defs/reference' }

/** Making one takes some 10 ms. */
const made = new WeakMap<Composition, JsonSchema>()

/** The schema of gateway.yaml for editors: joi's own translation, and what that cannot know. */
export function jsonSchema(composition: Composition): JsonSchema {
	const schema = made.get(composition) ?? makeSchema(composition)
	made.set(composition, schema)
	return schema
}

function makeSchema(composition: Composition): JsonSchema {
	const schema = composition.schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema
	allowEmpty(schema)
	for (const { patternProperties = {} } of Object.values(schema.properties ?? {})) {
		for (const one of Object.values(patternProperties)) {
			// Of kinds to choose from, joi also lists the branch for unknown ones.
			const strict = one.anyOf?.filter((branch) => branch.additionalProperties === false) ?? []
			if (strict.length > 1) one.anyOf = strict
		}
	}
	return {
		$schema: 'https://json-schema.org/draft/2020-12/schema',
		title: 'gateway.yaml',
		...allowReferences(schema),
		$defs: {
			reference: {
				type: 'string',
				description: 'A value from the environment: ${NAME} or ${NAME:-default}.',
				pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}',
			},
		},
	}
}

/** A section whose settings are all commented out reads as null. joi calls that empty() and does not translate it. */
function allowEmpty(schema: JsonSchema): void {
	for (const inner of Object.values(schema.properties ?? {})) {
		if (inner.type === 'object' || inner.type === 'array') inner.type = [inner.type, 'null']
		allowEmpty(inner)
	}
}

/** A setting may be a reference wherever its text alone would not do: a number, a choice, an address. */
function allowReferences(schema: JsonSchema): JsonSchema {
	const { properties, patternProperties, items, anyOf, ...rest } = schema
	// joi marks "as its keys say" by a symbol.
	if (typeof rest.default === 'symbol') delete rest.default
	if (properties || patternProperties || items || anyOf) {
		return {
			...rest,
			...(properties && { properties: each(properties) }),
			...(patternProperties && { patternProperties: each(patternProperties) }),
			...(items && { items: allowReferences(items) }),
			...(anyOf && { anyOf: anyOf.map(allowReferences) }),
		}
	}
	const freeText = schema.type === 'string' && !schema.enum && !schema.pattern && !schema.format
	// What tells kinds apart stays as it is, or a reference would fit both and editors would offer both.
	if (freeText || schema.type === 'object' || schema.enum?.length === 1) return schema
	const { description, default: fallback, ...limits } = schema
	return {
		...(description !== undefined && { description }),
		...(fallback !== undefined && { default: fallback }),
		anyOf: [limits, reference],
	}
}

function each(schemas: Record<string, JsonSchema>): Record<string, JsonSchema> {
	return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, allowReferences(schema)]))
}
