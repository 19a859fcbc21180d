import type { Schema } from 'joi'

/**
 * What the schemas of a route do not contain, for GET /v1/openapi.json. Everything else comes from the route itself: `id` names
 * the operation, `description` and `notes` describe it, and examples of bodies, parameters and answers are in their schemas
 * (joi's `.example()`); the example of an object without one consists of those of its keys.
 *
 *     plugins: { openapi: { errors: [404, 409] } }
 */
export interface OpenApiHints {
	/** Media type of its successful answers, if that is not JSON. */
	produces?: string
	/**
	 * Error statuses that it answers with beyond those that follow from its method, path, input and scope, such as 409. 400,
	 * 401, 403, 404, 413, 415, 429, 503 and 507 are added where they belong.
	 */
	errors?: readonly number[]
	/** Media type of its body, if that is not JSON. */
	consumes?: string
	/** The schema of its body, if the route reads the body itself, or if the rules cannot be shown in a schema. */
	body?: Schema
	/** Its headers, if the handler checks them. */
	headers?: Schema
	/**
	 * Answers that hapi does not check, since the route writes them itself: for each status the media types, such as
	 * `{ 200: { 'text/event-stream': Joi.string().example('data: {}') } }`; none for an answer without a body.
	 */
	answers?: Readonly<Record<number, Readonly<Record<string, Schema>>>>
	/** The shape of its errors, if that is not the gateway's own. */
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
