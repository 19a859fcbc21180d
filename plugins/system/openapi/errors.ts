import { STATUS_CODES } from 'node:http'
import { statusOf } from '../../../core/errors.ts'
import type { JsonSchema } from './schemas.ts'

const meanings: Record<number, string> = {
	400: 'The request is invalid; `errors` names the wrong fields.',
	401: 'The token is missing, unknown, revoked or expired.',
	403: 'The token lacks a scope; the message names it.',
	404: 'There is no such thing.',
	409: 'It exists already, or the state of things does not allow it.',
	413: 'The body is too large.',
	415: 'The body is not application/json.',
	429: 'Too many failed attempts, or too much that waits already; try again after `Retry-After` seconds.',
}
const ELSE = 'Any other error.'

const text = { schema: { type: 'string' } }
const headers: Record<number, Record<string, unknown>> = {
	401: { 'WWW-Authenticate': text },
	429: { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } },
}

/** What every error looks like. */
export const errorSchema: JsonSchema = {
	type: 'object',
	description: 'An error. The message says what to change; the code is stable.',
	properties: {
		statusCode: { type: 'integer' },
		error: { type: 'string', description: 'Name of the status.' },
		message: { type: 'string' },
		code: { type: 'string', enum: Object.keys(statusOf) },
		errors: {
			type: 'array',
			description: 'The wrong fields, where fields are wrong.',
			items: {
				type: 'object',
				properties: {
					path: { type: 'string', description: 'Where it stands, with dots; empty for the whole.' },
					message: { type: 'string' },
				},
				required: ['path', 'message'],
			},
		},
	},
	required: ['statusCode', 'error', 'message', 'code'],
}

/** Shared answers, by name. */
export function errorResponses(): Record<string, unknown> {
	const entries = Object.keys(meanings).map((status): [string, unknown] => [
		nameOf(Number(status)),
		answer(Number(status)),
	])
	return Object.fromEntries([...entries, ['Failure', answer(undefined)]])
}

/** A route's entry for an error status; `default` for all that are not named. */
export function errorResponse(status: number | 'default'): Record<string, unknown> {
	if (status !== 'default' && !(status in meanings)) return answer(status)
	return { $ref: `#/components/responses/${status === 'default' ? 'Failure' : nameOf(status)}` }
}

function answer(status: number | undefined): Record<string, unknown> {
	const known = status === undefined ? ELSE : (meanings[status] ?? STATUS_CODES[status] ?? ELSE)
	return {
		description: known,
		...(status !== undefined && headers[status] && { headers: headers[status] }),
		content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
	}
}

function nameOf(status: number): string {
	return (STATUS_CODES[status] ?? String(status)).replaceAll(/\W/g, '')
}
