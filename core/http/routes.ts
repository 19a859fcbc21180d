/** What plugins write into a route's `options` beside hapi's own settings, and how hapi keeps it. */
import type { RequestRoute, RouteOptionsAccess } from '@hapi/hapi'
import type { Schema } from 'joi'

/**
 * The `auth` of a route that a caller with this scope, or with `*`, may use:
 *
 *     server.route({ method: 'GET', path: '/v1/notes', options: { auth: scoped('agents:read') }, handler })
 *
 * A route without `auth` accepts only callers with `*`, and `auth: false` accepts all callers. The auth plugin refuses a
 * generation that has a route with anything else, or with a scope that no token can have.
 */
export function scoped(scope: string): RouteOptionsAccess {
	return { access: { scope: [scope, '*'] } }
}

/** Whether a caller with these scopes has this one: by name, or by `*`. */
export function holds(scopes: readonly string[], scope: string): boolean {
	return scopes.includes('*') || scopes.includes(scope)
}

/** The rules of a route as hapi keeps them, which its types do not show: `server.auth.lookup(route)`. */
export interface RouteAccess {
	strategies: string[]
	mode: string
	access?: { entity?: string; scope?: { selection?: string[]; required?: string[]; forbidden?: string[] } | false }[]
}

/** The scopes of which a caller needs one; empty for a route that accepts all callers. */
export function scopesOf(rules: RouteAccess | false): string[] {
	const { access = [] } = rules || {}
	return access.flatMap(({ scope }) => (scope && scope.selection) || [])
}

/**
 * What a route's own schemas do not say, for GET /v1/openapi.json. Everything else comes from the route itself: `id` names
 * the operation, `description` and `notes` describe it, and examples of bodies, parameters and answers stand in their
 * schemas (joi's `.example()`); an object without one is put together from those of its keys.
 *
 *     plugins: { openapi: { errors: [404, 409] } }
 */
export interface OpenApiHints {
	/** Media type of its successful answers, where that is not JSON. */
	produces?: string
	/**
	 * Error statuses that it answers with beyond those that follow from its method, path, input and scope, such as 409. 400,
	 * 401, 403, 404, 413, 415, 429, 503 and 507 are added where they belong.
	 */
	errors?: readonly number[]
	/** What its body looks like, where the route reads it by itself, or where its rules are more than can be shown. */
	body?: Schema
	/**
	 * Answers that hapi does not check, since the route writes them by itself: for each status the media types, such as
	 * `{ 200: { 'text/event-stream': Joi.string().example('data: {}') } }`; none for an answer without a body.
	 */
	answers?: Readonly<Record<number, Readonly<Record<string, Schema>>>>
	/** What its errors look like, where that is not the gateway's own shape. */
	failure?: Schema
}

declare module '@hapi/hapi' {
	interface PluginSpecificConfiguration {
		openapi?: OpenApiHints
	}
	interface ServerAuth {
		/** The default if the route sets nothing; false if it accepts all callers. */
		lookup(route: RequestRoute): RouteAccess | false
	}
}
