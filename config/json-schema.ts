import type { Composition } from './composition.ts'

/** The part of JSON Schema 2020-12 that the schema of gateway.yaml uses. */
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

/** The property with this name, which comes from outside: `toString` must not be found. */
export function ownOf(properties: JsonSchema['properties'], name: string | number): JsonSchema | undefined {
	return properties && Object.hasOwn(properties, name) ? properties[name] : undefined
}

const reference = { $ref: '#/$defs/reference' }

/** Generating a schema takes some 10 ms. */
const schemas = new WeakMap<Composition, JsonSchema>()

/** The schema of gateway.yaml for editors: joi's translation, completed with what joi does not translate. */
export function jsonSchema(composition: Composition): JsonSchema {
	const schema = schemas.get(composition) ?? makeSchema(composition)
	schemas.set(composition, schema)
	return schema
}

function makeSchema(composition: Composition): JsonSchema {
	const schema = composition.schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' }) as JsonSchema
	allowEmpty(schema)
	for (const { patternProperties = {} } of Object.values(schema.properties ?? {})) {
		for (const one of Object.values(patternProperties)) {
			// For a setting with several kinds, joi also lists the branch for unknown kinds.
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

/** Allows null for sections whose settings are all commented out. joi does not translate its `empty(null)`. */
function allowEmpty(schema: JsonSchema): void {
	for (const inner of Object.values(schema.properties ?? {})) {
		if (inner.type === 'object' || inner.type === 'array') inner.type = [inner.type, 'null']
		allowEmpty(inner)
	}
}

/** Also allows a reference to the environment for settings that are not free text: a number, a choice, an address. */
function allowReferences(schema: JsonSchema): JsonSchema {
	const { properties, patternProperties, items, anyOf, ...rest } = schema
	// joi uses a symbol for a default that consists of the defaults of the keys.
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
	// A single choice distinguishes kinds: with a reference, several kinds would match and editors would offer all of them.
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
