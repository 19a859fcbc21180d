import type { Schema } from 'joi'

/**
 * Adds to GET /v1/openapi.json what the schemas of a route do not contain. Everything else comes from the route itself: `id`,
 * `description` and `notes` are the id and the texts of the operation. Examples come from joi's `.example()` in the schemas; an
 * object without one gets an example made of those of its keys.
 *
 *     plugins: { openapi: { errors: [404, 409] } }
 */
export interface OpenApiHints {
	/** Media type of successful responses, if not JSON. */
	produces?: string
	/**
	 * Further error statuses of the route, such as 409. 400, 401, 403, 404, 413, 415, 429, 503 and 507 are added automatically if
	 * they follow from its method, path, input and scope.
	 */
	errors?: readonly number[]
	/** Media type of the request body, if not JSON. */
	consumes?: string
	/** The schema of the request body, if the route parses the body itself, or if the rules cannot be shown in a schema. */
	body?: Schema
	/** The request headers, if the handler validates them. */
	headers?: Schema
	/**
	 * Responses that hapi does not validate, since the route writes them itself. For each status its media types, such as
	 * `{ 200: { 'text/event-stream': Joi.string().example('data: {}') } }`; an empty object for a response without a body.
	 */
	answers?: Readonly<Record<number, Readonly<Record<string, Schema>>>>
	/** The schema of the route's errors, if not `Error`. */
	failure?: Schema
	/**
	 * The day since which the route is deprecated, such as `2027-01-31`. The document marks it, and its responses have the header
	 * `Deprecation` (RFC 9745). For a deprecated field, use `.tag('deprecated')` in its joi schema.
	 */
	deprecated?: string
	/** A further schema of the route's errors, besides `Error`. */
	otherFailure?: Schema
}

/** A page for browsers that replaces the gateway's own at `/`. */
export interface FrontPage {
	/** If it throws, the gateway's own page is shown. */
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
