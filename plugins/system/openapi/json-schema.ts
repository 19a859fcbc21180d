/** The parts of JSON Schema 2020-12, and of joi's descriptions, that the API description needs. */
import type { Description } from 'joi'

export interface JsonSchema {
	type?: string | string[]
	description?: string
	properties?: Record<string, JsonSchema>
	patternProperties?: Record<string, JsonSchema>
	propertyNames?: JsonSchema
	required?: string[]
	additionalProperties?: boolean | JsonSchema
	items?: JsonSchema
	enum?: unknown[]
	format?: string
	pattern?: string
	minLength?: number
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

export interface About extends Description {
	flags?: { id?: string; unknown?: boolean; presence?: string }
	keys?: Record<string, About>
	items?: About[]
	matches?: { schema?: About }[]
	patterns?: { schema?: About; rule: About }[]
	rules?: { name: string; args?: { regex?: string; options?: { invert?: boolean } } }[]
	allow?: unknown[]
	dependencies?: Dependency[]
	examples?: unknown[]
	tags?: string[]
}

/** A rule between the keys of one object. */
export interface Dependency {
	rel: string
	key?: string
	peers: unknown[]
}
