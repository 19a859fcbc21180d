import type { RequestRoute } from '@hapi/hapi'
import { scopesOf } from '../../shared/scopes.ts'
import type { RouteAccess } from '../../../core/http/hapi-types.ts'
import { responsesOf } from './answers.ts'
import { bodyOf, parametersOf } from './requests.ts'
import type { Schemas } from './schemas.ts'

/** The OpenAPI operation of a route with one method. `access`: the route's rules, including defaults. */
export function operationOf(
	route: RequestRoute,
	method: string,
	access: RouteAccess | false,
	schemas: Schemas,
): Record<string, unknown> {
	const { settings } = route
	const withoutAll = scopesOf(access).filter((scope) => scope !== '*')
	const scopes = withoutAll.length > 0 ? withoutAll : ['*']
	const body = bodyOf(route, schemas)
	const parameters = parametersOf(route, schemas)
	const notes = [settings.notes ?? []].flat()
	const needs = access === false ? 'Needs no token.' : `Needs the scope ${inWords(withoutAll)}.`
	const traits = { method, hasCaller: access !== false, hasInput: parameters.length > 0, hasBody: body !== undefined }
	return {
		operationId: operationId(route, method),
		...(settings.description !== undefined && { summary: settings.description }),
		description: [...notes, needs].join('\n\n'),
		tags: (settings.tags ?? []).filter((tag) => tag !== 'api'),
		...(settings.plugins?.openapi?.deprecated !== undefined && { deprecated: true }),
		...(parameters.length > 0 && { parameters }),
		...(body && { requestBody: body }),
		responses: responsesOf(route, traits, schemas),
		// In OpenAPI, one entry of the list is enough.
		security: access === false ? [] : scopes.map((scope) => ({ bearer: [scope] })),
		...(access !== false && { 'x-scope': scopes.length === 1 ? scopes[0] : scopes }),
	}
}

function inWords(scopes: string[]): string {
	return scopes.length === 0 ? '`*`' : `${scopes.map((scope) => `\`${scope}\``).join(' or ')} (or \`*\`)`
}

/** The route's id, or one made from method and path. */
function operationId({ settings, method, path }: RequestRoute, operationMethod: string): string {
	if (settings.id !== undefined && method !== '*') return settings.id
	const words = path
		.replace(/^\/v\d+(?=\/)/, '')
		.split(/[^\w{}]+/)
		.map((part) => part.replace(/^\{/, 'by_').replaceAll(/\W/g, ''))
		.flatMap((part) => part.split('_'))
		.filter(Boolean)
	return operationMethod + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
