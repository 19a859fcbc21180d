/** The schema of errors, the error responses, and headers of all responses. */
import { STATUS_CODES } from 'node:http'
import { generalCodes } from '../../../core/errors.ts'
import type { FaultCode, FieldError } from '../../../core/errors.ts'
import { exampleOf } from './examples.ts'
import type { JsonSchema } from './json-schema.ts'
import type { Schemas } from './schemas.ts'

interface Meaning {
	description: string
	code: FaultCode
	message: string
	errors?: FieldError[]
}

/** What each error status means, with an example. Also for the table in docs/http-api.md. */
export const meanings: Readonly<Record<number, Meaning>> = {
	400: {
		description: 'The request is invalid. `errors` lists the invalid fields, if any.',
		code: 'invalid_request',
		message: 'limit must be a number',
		errors: [{ path: 'limit', message: 'limit must be a number' }],
	},
	401: {
		description: 'The token is missing, unknown, revoked or expired, or a signature is invalid.',
		code: 'unauthorized',
		message: 'the token is unknown; check that it is complete, or create another',
	},
	403: {
		description:
			'The token lacks a scope, the agent lacks a grant or an approval, or the caller may not do this. The message states the reason.',
		code: 'forbidden',
		message: 'this needs the scope agents:write; the token has agents:read',
	},
	404: {
		description: 'The resource does not exist.',
		code: 'not_found',
		message: 'there is no agent "ada"; POST /v1/agents creates one',
	},
	405: {
		description: 'The path does not support this method; `Allow` lists the supported ones.',
		code: 'method_not_allowed',
		message: 'this path accepts POST, not GET',
	},
	406: {
		description: 'The header `Accept` allows none of the media types of the response.',
		code: 'invalid_request',
		message: 'the header Accept must name application/json and text/event-stream',
	},
	409: {
		description: 'The resource already exists, or its state does not allow the operation.',
		code: 'conflict',
		message: 'run 0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05 has ended already: completed',
	},
	413: {
		description: 'The body is too large.',
		code: 'payload_too_large',
		message: 'the body may have at most 1 MiB; upload files first and refer to them',
	},
	415: {
		description: 'The body is not application/json.',
		code: 'unsupported_media_type',
		message: 'the body has another type; send JSON with the header content-type: application/json',
	},
	429: {
		description:
			'Too many failed attempts, too many waiting requests, or a limit of the token is reached; try again after `Retry-After` seconds. A valid token is never refused for the failures of others.',
		code: 'rate_limited',
		message:
			'too many failed attempts from your address; wait 42 s before you try another token or code (a valid token is always accepted)',
	},
	500: {
		description: "An internal error. The gateway's log has the details, with the id of the request.",
		code: 'internal',
		message: 'An internal server error occurred',
	},
	502: {
		description: 'The model, another server or a skill has failed.',
		code: 'model_rejected',
		message: 'the model refused the request',
	},
	503: {
		description:
			'Temporarily unavailable, such as while the gateway stops or a limit is reached. Nothing was changed; try again.',
		code: 'unavailable',
		message: 'the gateway is stopping',
	},
	504: {
		description: 'The model or another server did not answer in time.',
		code: 'model_timeout',
		message: 'the model did not answer in time',
	},
	507: {
		description: 'The disk is nearly full, so nothing was changed. Reads still work.',
		code: 'storage_full',
		message: 'the disk is nearly full; make room, or lower store.min_free_mib',
	},
}

/** Statuses that every changing operation may return. */
export const ofWrites: readonly number[] = [503, 507]

/** Headers of all responses. */
export const everyHeader = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }

/** Headers that any error may have. */
const errorHeader = { 'X-Hint': { $ref: '#/components/headers/Hint' } }

export const sharedHeaders: Record<string, unknown> = {
	RequestId: {
		description:
			'Identifies the request in the log: the `X-Request-Id` of the request (1 to 128 of A-Z a-z 0-9 . _ -), or a new id.',
		schema: { type: 'string' },
		example: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05',
	},
	Hint: {
		description:
			"Present if the message suggests another request: that request as JSON, with its `route` in this document, the values of the route's path parameters in `params`, and `request`, its text in the message.",
		schema: { type: 'string', contentMediaType: 'application/json' },
		example: '{"route":"GET /v1/agents/{name}/skills","params":{"name":"ada"},"request":"GET /v1/agents/ada/skills"}',
	},
}

const OTHER = 'Any other error.'
const headers: Record<number, Record<string, unknown>> = {
	401: { 'WWW-Authenticate': header('Always begins with `Bearer`.', { type: 'string' }, 'Bearer') },
	403: {
		'WWW-Authenticate': header(
			'The missing scope, if there is one.',
			{ type: 'string' },
			'Bearer error="insufficient_scope", scope="agents:write"',
		),
	},
	429: { 'Retry-After': header('Seconds to wait.', { type: 'integer', minimum: 0 }, 42) },
	503: { 'Retry-After': header('Seconds to wait, if known.', { type: 'integer', minimum: 0 }, 5) },
}

/** The schema of errors. `codes`: those that plugins add. */
export function errorSchema(codes: Iterable<string>): JsonSchema {
	return {
		type: 'object',
		description: 'An error. The message states what to change; the code is stable.',
		properties: {
			statusCode: { type: 'integer' },
			error: { type: 'string', description: 'Name of the status.' },
			message: { type: 'string' },
			code: { type: 'string', enum: [...Object.keys(generalCodes), ...codes] },
			errors: {
				type: 'array',
				description: 'The invalid fields, if any.',
				items: {
					type: 'object',
					properties: {
						path: { type: 'string', description: "The field's path, with dots; empty for the whole body." },
						message: { type: 'string' },
						line: { type: 'integer', description: 'Line of a mistake in gateway.yaml, from 1.' },
						column: { type: 'integer', description: 'Column of a mistake in gateway.yaml, from 1.' },
					},
					required: ['path', 'message'],
				},
			},
		},
		required: ['statusCode', 'error', 'message', 'code'],
	}
}

/**
 * The response of a route for an error status; `default`: all others. `failure`: the schema of the route's errors, or one with that
 * schema as its last alternative.
 */
export function errorResponse(
	status: number | 'default',
	failure: JsonSchema | undefined,
	schemas: Schemas,
): Record<string, unknown> {
	const known = status === 'default' ? undefined : status
	const schema = failure ?? { $ref: '#/components/schemas/Error' }
	const example = failure ? exampleOf(failure, schemas) : exampleOfError(known ?? 500)
	const response = {
		description: (known && (meanings[known]?.description ?? STATUS_CODES[known])) ?? OTHER,
		headers: { ...(known && headers[known]), ...everyHeader, ...(!failure && errorHeader) },
		content: { 'application/json': { schema, ...(example !== undefined && { example }) } },
	}
	const own = failure && [failure, ...(failure.anyOf ?? [])].at(-1)?.$ref?.split('/').at(-1)
	if (failure && own === undefined) return response
	return schemas.shareResponse(`${own ?? ''}${known === undefined ? 'Failure' : responseName(known)}`, response)
}

/** A response's name among the components, such as `NotFound`. */
export function responseName(status: number | string): string {
	return (STATUS_CODES[status] ?? String(status)).replaceAll(/\W/g, '')
}

function exampleOfError(statusCode: number): unknown {
	const meaning = meanings[statusCode]
	if (!meaning) return undefined
	const { code, message, errors } = meaning
	return { statusCode, error: STATUS_CODES[statusCode], message, code, ...(errors && { errors }) }
}

function header(description: string, schema: JsonSchema, example: unknown): Record<string, unknown> {
	return { description, schema, example }
}
