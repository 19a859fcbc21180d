/**
 * The id that identifies a request: in the header `x-request-id` of its answer, in each log line about it, and in the runs that
 * it starts.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { newId } from '../util/ids.ts'
import { logFields, openLogContext } from '../util/context.ts'
import type { LogFields } from '../util/context.ts'

export const REQUEST_ID = 'x-request-id'
/** The ids of callers that are safe in a log line. */
const FIT = /^[A-Za-z0-9._-]{1,128}$/
/** W3C Trace Context, version 00: all that may be in it is hexadecimal. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** Not logged: its sender's own systems have it. */
const traceparents = new WeakMap<LogFields, string>()

/** Serves a request under the id that its caller sent, or a new one. The id applies until the response has been sent. */
export function underRequestId(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
	const fields = { request_id: requestIdFor(request) }
	const { traceparent } = request.headers
	if (typeof traceparent === 'string' && TRACEPARENT.test(traceparent)) traceparents.set(fields, traceparent)
	// Set here, so that answers that hapi does not make have it too.
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

/** The request that caused the current work, for the record of what it starts; empty if there is none. */
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
