/** The OpenAPI document for tests: its operations, and the validation of values with a third-party JSON Schema library. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { JsonSchema } from '../../plugins/system/openapi/json-schema.ts'

export interface Media {
	schema: JsonSchema
	example?: unknown
}

export interface Reply {
	$ref?: string
	description?: string
	headers?: Record<string, unknown>
	content?: Record<string, Media>
}

export interface Parameter extends Media {
	name: string
	in: 'path' | 'query' | 'header'
	required?: boolean
	description?: string
}

export interface Operation {
	operationId: string
	summary?: string
	description: string
	tags: string[]
	parameters?: Parameter[]
	requestBody?: { required: boolean; content: Record<string, Media> }
	responses: Record<string, Reply>
	security: Record<string, string[]>[]
	'x-scope'?: string | string[]
}

interface Server {
	url: string
	variables?: Record<string, { default: string }>
}

export interface Described {
	openapi: string
	info: { title: string; version: string }
	servers: Server[]
	tags: { name: string; description?: string }[]
	paths: Record<string, Record<string, Operation> & { servers?: Server[] }>
	components: { schemas: Record<string, JsonSchema>; responses: Record<string, Reply>; securitySchemes: object }
}

export interface Entry {
	method: string
	path: string
	operation: Operation
	/** The server of the path; undefined if it is that of the document. */
	server?: Server
}

export function operationsOf({ paths }: Described): Entry[] {
	return Object.entries(paths).flatMap(([path, { servers, ...methods }]) =>
		Object.entries(methods).map(([method, operation]) => ({
			method,
			path,
			operation,
			...(servers?.[0] && { server: servers[0] }),
		})),
	)
}

/** The URL of a server, with the defaults of its variables. */
export function urlOf({ url, variables = {} }: Server): string {
	return url.replaceAll(/\{(\w+)\}/g, (_, name: string) => variables[name]?.default ?? '')
}

/** The target of a `$ref`; any other value unchanged. */
export function resolve<T extends { $ref?: string }>(document: Described, value: T): T {
	if (value.$ref === undefined) return value
	let found: unknown = document
	for (const part of value.$ref.slice(2).split('/')) found = (found as Record<string, unknown> | undefined)?.[part]
	if (found === undefined) throw new Error(`${value.$ref} leads nowhere`)
	return found as T
}

/**
 * Returns a function that lists the errors of a value against a schema, which may refer to `components`; empty for a valid value. It
 * throws if the schema is invalid or contains unknown keywords.
 */
export function checkerOf(components: Record<string, JsonSchema>): (schema: JsonSchema, value: unknown) => string {
	const ajv = new Ajv2020({ strictSchema: true, strictTypes: false, strictTuples: false, allErrors: true })
	addFormats.default(ajv)
	const referring = (schema: JsonSchema): JsonSchema =>
		JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/components/schemas/', '"$ref":"api:')) as JsonSchema
	for (const [name, schema] of Object.entries(components)) ajv.addSchema(referring(schema), `api:${name}`)
	const compiled = new WeakMap<JsonSchema, ValidateFunction>()
	return (schema, value) => {
		const validate = compiled.get(schema) ?? ajv.compile(referring(schema))
		compiled.set(schema, validate)
		return validate(value) ? '' : ajv.errorsText(validate.errors, { dataVar: 'it' })
	}
}
