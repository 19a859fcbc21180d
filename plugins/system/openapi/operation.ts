import { STATUS_CODES } from 'node:http'
import type { RequestRoute, RouteSettings } from '@hapi/hapi'
import type { ObjectSchema, Schema } from 'joi'
import { scopesOf } from '../../../core/routes.ts'
import type { RouteAccess } from '../../../core/routes.ts'
import { errorResponse } from './errors.ts'
import type { Schemas } from './schemas.ts'

/** One route with one method, as OpenAPI describes it. `access`: its rules, defaults included. */
export function operationOf(
	route: RequestRoute,
	method: string,
	access: RouteAccess | false,
	schemas: Schemas,
): Record<string, unknown> {
	const { settings } = route
	const scopes = scopesOf(access)
	const named = scopes.filter((scope) => scope !== '*')
	const body = bodyOf(settings, schemas)
	const parameters = parametersOf(route, schemas)
	const notes = [settings.notes ?? []].flat()
	const needs = access === false ? 'No token is needed.' : `Needs the scope ${inWords(named)}.`
	return {
		operationId: operationId(method, route.path),
		...(settings.description !== undefined && { summary: settings.description }),
		description: [...notes, needs].join('\n\n'),
		tags: (settings.tags ?? []).filter((tag) => tag !== 'api'),
		...(parameters.length > 0 && { parameters }),
		...(body && { requestBody: body }),
		responses: {
			...successes(settings, method, schemas),
			...errors(route, method, access !== false, body !== undefined || parameters.length > 0, body !== undefined),
		},
		security: access === false ? [] : [{ bearer: [] }],
		...(access !== false && { 'x-required-scope': named.length === 1 ? named[0] : named.length > 1 ? named : '*' }),
	}
}

/** hapi's path as OpenAPI writes it: `{rest*}` and `{id?}` lose their marks. */
export function templateOf(path: string): string {
	return path.replaceAll(/\{(\w+)(\*\d*|\?)\}/g, '{$1}')
}

function inWords(scopes: string[]): string {
	return scopes.length === 0 ? '`*`' : `${scopes.map((scope) => `\`${scope}\``).join(' or ')} (or \`*\`)`
}

function operationId(method: string, path: string): string {
	const words = path
		.replace(/^\/v\d+(?=\/)/, '')
		.split(/[^\w{}]+/)
		.map((part) => part.replace(/^\{/, 'by_').replaceAll(/\W/g, ''))
		.flatMap((part) => part.split('_'))
		.filter(Boolean)
	return method + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function parametersOf(route: RequestRoute, schemas: Schemas): Record<string, unknown>[] {
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

function group(where: string, rules: unknown, schemas: Schemas): Record<string, unknown>[] {
	if (!isJoi(rules) || rules.type !== 'object') return []
	return schemas.properties(rules as ObjectSchema).map(({ name, required, schema }) => {
		const { description, ...rest } = schema
		return {
			name,
			in: where,
			// A path without one of its parts would be another path.
			...((required || where === 'path') && { required: true }),
			...(description !== undefined && { description }),
			schema: rest,
		}
	})
}

function bodyOf(settings: RouteSettings, schemas: Schemas): Record<string, unknown> | undefined {
	const rules: unknown = settings.validate?.payload
	if (!isJoi(rules)) {
		const isRaw = settings.payload?.parse === false
		return isRaw ? { required: true, content: { 'application/json': { schema: {} } } } : undefined
	}
	const isRequired = (rules.describe().flags as { presence?: string } | undefined)?.presence === 'required'
	return { required: isRequired, content: { 'application/json': { schema: schemas.of(rules) } } }
}

function successes(settings: RouteSettings, method: string, schemas: Schemas): Record<string, unknown> {
	const produces = settings.plugins?.openapi?.produces
	const declared = Object.entries(settings.response?.status ?? {})
	if (declared.length === 0) {
		if (produces !== undefined) return { 200: success(200, produces, { type: 'string' }) }
		return method === 'delete' ? { 204: { description: 'No Content' } } : { 200: { description: 'OK' } }
	}
	return Object.fromEntries(
		declared.map(([status, rules]) => [
			status,
			isJoi(rules)
				? success(Number(status), produces ?? 'application/json', schemas.of(rules))
				: { description: STATUS_CODES[status] ?? status },
		]),
	)
}

function success(status: number, type: string, schema: unknown): Record<string, unknown> {
	return { description: STATUS_CODES[status] ?? String(status), content: { [type]: { schema } } }
}

function errors(
	route: RequestRoute,
	method: string,
	hasCaller: boolean,
	hasInput: boolean,
	hasBody: boolean,
): Record<string, unknown> {
	const declared = Object.keys(route.settings.response?.status ?? {}).map(Number)
	const statuses = new Set([
		...(hasInput ? [400] : []),
		...(hasCaller ? [401, 403, 429] : []),
		...(route.path.includes('{') ? [404] : []),
		...(['post', 'put', 'patch'].includes(method) ? [409] : []),
		...(hasBody ? [413, 415] : []),
		...(route.settings.plugins?.openapi?.errors ?? []),
	])
	const entries = [...statuses]
		.filter((status) => !declared.includes(status))
		.toSorted((a, b) => a - b)
		.map((status): [string, unknown] => [String(status), errorResponse(status)])
	return Object.fromEntries([...entries, ['default', errorResponse('default')]])
}

/** By its looks: a third party may bring a joi of its own. */
function isJoi(rules: unknown): rules is Schema {
	return typeof rules === 'object' && rules !== null && 'describe' in rules && '~standard' in rules
}
