/** The inputs of an operation: its parameters and its body. */
import type { RequestRoute } from '@hapi/hapi'
import type { ObjectSchema, Schema } from 'joi'
import { schemaOf } from '../../../core/http/schemas.ts'
import { mediaOf } from './answers.ts'
import { isJoi } from './schemas.ts'
import type { Schemas } from './schemas.ts'

export function parametersOf(route: RequestRoute, schemas: Schemas): Record<string, unknown>[] {
	const found = [
		...group('path', schemaOf(route, 'params'), schemas),
		...group('query', schemaOf(route, 'query'), schemas),
		...group('header', route.settings.plugins?.openapi?.headers ?? schemaOf(route, 'headers'), schemas),
	]
	for (const [, name] of templateOf(route.path).matchAll(/\{(\w+)\}/g)) {
		if (!found.some((parameter) => parameter.in === 'path' && parameter.name === name))
			found.push({ name, in: 'path', required: true, schema: { type: 'string' } })
	}
	return found
}

/** Undefined if the route has no request body. */
export function bodyOf(route: RequestRoute, schemas: Schemas): Record<string, unknown> | undefined {
	const { settings } = route
	const { body, consumes = 'application/json' } = settings.plugins?.openapi ?? {}
	const rules: unknown = body ?? schemaOf(route, 'payload')
	if (!isJoi(rules)) {
		const isRaw = settings.payload?.parse === false
		return isRaw ? { required: true, content: { 'application/json': { schema: {} } } } : undefined
	}
	return { required: isRequired(rules), content: { [consumes]: mediaOf(schemas.of(rules), schemas) } }
}

function isRequired(rules: Schema): boolean {
	return '$_getFlag' in rules && rules.$_getFlag('presence') === 'required'
}

function group(where: string, rules: unknown, schemas: Schemas): Record<string, unknown>[] {
	if (!isJoi(rules) || rules.type !== 'object') return []
	return schemas.properties(rules as ObjectSchema).map(({ name, required, schema }) => {
		const { description, examples, ...rest } = schema
		return {
			name,
			in: where,
			// OpenAPI requires it for parameters in paths.
			...((required || where === 'path') && { required: true }),
			...(description !== undefined && { description }),
			schema: rest,
			...(examples && { example: examples[0] }),
		}
	})
}

/** Converts hapi's path to OpenAPI's syntax: `{rest*}` and `{id?}` become `{rest}` and `{id}`. */
export function templateOf(path: string): string {
	return path.replaceAll(/\{(\w+)(\*\d*|\?)\}/g, '{$1}')
}
