/** The inputs of an operation: its parameters and its body. */
import type { RequestRoute, RouteSettings } from '@hapi/hapi'
import type { ObjectSchema, Schema } from 'joi'
import { mediaOf } from './answers.ts'
import { templateOf } from './path.ts'
import { isJoi } from './schemas.ts'
import type { Schemas } from './schemas.ts'

export function parametersOf(route: RequestRoute, schemas: Schemas): Record<string, unknown>[] {
	const { params, query, headers } = route.settings.validate ?? {}
	const found = [
		...group('path', params, schemas),
		...group('query', query, schemas),
		...group('header', headers, schemas),
	]
	for (const [, name] of templateOf(route.path).matchAll(/\{(\w+)\}/g)) {
		if (!found.some((one) => one.in === 'path' && one.name === name))
			found.push({ name, in: 'path', required: true, schema: { type: 'string' } })
	}
	return found
}

/** Undefined if it has no body. */
export function bodyOf(settings: RouteSettings, schemas: Schemas): Record<string, unknown> | undefined {
	const { body, consumes = 'application/json' } = settings.plugins?.openapi ?? {}
	const rules: unknown = body ?? settings.validate?.payload
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
			// A path without one of its parts would be another path.
			...((required || where === 'path') && { required: true }),
			...(description !== undefined && { description }),
			schema: rest,
			...(examples && { example: examples[0] }),
		}
	})
}
