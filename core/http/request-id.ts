/**
 * The id by which a request is found again: in the header `x-request-id` of its answer, in each line that the log has
 * about it, and in the runs that it starts.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { newId } from '../util/ids.ts'
import { logFields, openLogContext } from '../util/context.ts'
import type { LogFields } from '../util/context.ts'

export const REQUEST_ID = 'x-request-id'
/** What a log line may contain, whatever a client sends. */
const FIT = /^[A-Za-z0-9._-]{1,128}$/
/** W3C Trace Context, version 00: all that may be in it is hexadecimal. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** Not logged: its sender's own systems have it. */
const traceparents = new WeakMap<LogFields, string>()

/** Serves a request under the id that its caller gave it, or a new one. The id is the request's until its response has been sent. */
export function underRequestId(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
	const fields = { request_id: requestIdFor(request) }
	const { traceparent } = request.headers
	if (typeof traceparent === 'string' && TRACEPARENT.test(traceparent)) traceparents.set(fields, traceparent)
	// Set here, it goes out with every answer: those that hapi does not make, too.
	response.setHeader(REQUEST_ID, fields.request_id)
	const { run, end } = openLogContext(fields)
	response.on('close', end)
	run(serve)
}

export interface Origin {
	request_id?: string
	/** The caller's, if the request has one: a span of W3C Trace Context. */
	traceparent?: string
}

/** The request that led to what happens now, for the record of what it starts; empty if none did. */
export function requestOrigin(): Origin {
	const fields = logFields()
	const traceparent = traceparents.get(fields)
	return {
		...(fields.request_id !== undefined && { request_id: fields.request_id }),
		...(traceparent !== undefined && { traceparent }),
	}
}

/** The caller's own id, if it is valid. */
export function requestIdFor({ headers }: IncomingMessage): string {
	const given = headers[REQUEST_ID]
	return typeof given === 'string' && FIT.test(given) ? given : newId()
}
