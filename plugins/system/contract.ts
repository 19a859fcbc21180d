import type { Schema } from 'joi'

/** One health check. */
export interface Check {
	name: string
	ok: boolean
	/** The state; if it is not well, what to do. */
	message: string
}

export interface Health {
	/** `degraded`: it serves, but something needs attention. */
	status: 'ok' | 'degraded' | 'migrating' | 'starting' | 'draining'
	version: string
	generation: number
	/** Seconds since the start. */
	uptime_s: number
	checks: Check[]
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
	/** Media type of its body, where that is not JSON. */
	consumes?: string
	/** What its body looks like, where the route reads it by itself, or where its rules are more than can be shown. */
	body?: Schema
	/** Its headers, where the handler checks them. */
	headers?: Schema
	/**
	 * Answers that hapi does not check, since the route writes them by itself: for each status the media types, such as
	 * `{ 200: { 'text/event-stream': Joi.string().example('data: {}') } }`; none for an answer without a body.
	 */
	answers?: Readonly<Record<number, Readonly<Record<string, Schema>>>>
	/** What its errors look like, where that is not the gateway's own shape. */
	failure?: Schema
	/**
	 * The day since which the route is deprecated, such as `2027-01-31`: the document marks it, and its answers have the header
	 * `Deprecation` (RFC 9745). A deprecated field has `.tag('deprecated')` in its joi schema.
	 */
	deprecated?: string
	/** Another shape that its errors may have, besides the gateway's own. */
	otherFailure?: Schema
}

/** A page in place of the gateway's own at `/`, for browsers. */
export interface FrontPage {
	/** Throws where it cannot be made; then the gateway's own is shown. */
	html(): Promise<string>
	contentSecurityPolicy: string
}

declare module '../../core/plugin.ts' {
	interface Extensions {
		'front-page': FrontPage
	}
}

declare module '@hapi/hapi' {
	interface PluginSpecificConfiguration {
		openapi?: OpenApiHints
	}
}
