/** The scopes that routes require. */
import type { RouteOptionsAccess } from '@hapi/hapi'
import type { RouteAccess } from '../../core/http/hapi-types.ts'

/**
 * The `auth` of a route that a caller with this scope, or with `*`, may use:
 *
 *     server.route({ method: 'GET', path: '/v1/notes', options: { auth: scoped('agents:read') }, handler })
 *
 * A route without `auth` accepts only callers with `*`, and `auth: false` accepts all callers. The auth plugin refuses other
 * values of `auth`, and scopes that no token can have.
 */
export function scoped(scope: string): RouteOptionsAccess {
	return { access: { scope: [scope, '*'] } }
}

/** Whether a caller with these scopes has `*` or one of the `wanted` scopes. */
export function holds(scopes: readonly string[], ...wanted: readonly string[]): boolean {
	return scopes.includes('*') || wanted.some((scope) => scopes.includes(scope))
}

/** The scopes of a route, of which a caller needs one; empty if the route accepts all callers. */
export function scopesOf(rules: RouteAccess | false): string[] {
	const { access = [] } = rules || {}
	return access.flatMap(({ scope }) => (scope && scope.selection) || [])
}
