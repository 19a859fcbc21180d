/** One hapi server of a generation: limits, and the form of errors. */
import { boomify, isBoom } from '@hapi/boom'
import type { Boom } from '@hapi/boom'
import hapi from '@hapi/hapi'
import type { Request, RouteOptions, Server } from '@hapi/hapi'
import type { ValidationError } from 'joi'
import { Fault } from '../errors.ts'
import { BODY_LIMIT_BYTES, bodyRead, bodyUsed, shareForBody } from './body-budget.ts'
import { describe, toBoom } from './boom.ts'
import { leaveLargeBody, parseBody, takeReadyBody, tooManyValues, VALUES_LIMIT } from './json-body.ts'
import { hasOneHost } from './one-host.ts'
import { answerOverlongBody } from './overlong-body.ts'
import { isSchema, prepareSchemas, schemaOf, withPreferences } from './schemas.ts'
import type { FaultCode, FieldError } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import type { Redactor } from '../redactor/redactor.ts'
import { culpritOf } from '../util/culprit.ts'
import { excerpt } from '../util/excerpt.ts'
import { REQUEST_ID } from './request-id.ts'
import type {} from './hapi-types.ts'

const MIB_BYTES = 1024 * 1024
/** Invalid fields that an answer names. */
const ERROR_LIMIT = 50
/** How many characters of a caller's text an error repeats. */
const ECHO_LIMIT = 200
/** How many unknown keys of a body an error names, and how many characters of each. */
const UNKNOWN_KEYS = 5
const KEY_LIMIT = 64
const DEPTH_LIMIT = 64
/** Values of a body up to which all mistakes are reported; reporting a hundred thousand would take a second. */
const ALL_MISTAKES_LIMIT = 2_000

export interface ServerOptions {
	log: Logger
	redactor: Redactor
	/** Compares every response with its route's declared schema and fails if they differ; for tests. */
	checkResponses: boolean
	/** No third-party plugin has access to the server. Such a plugin could use all of hapi, even on the routes of others. */
	onlyBuiltIn: boolean
	/** The built-in plugin that would answer at this path if it were on. */
	offAt?(path: string): string | undefined
}

/** A server that does not listen: the listeners pass requests to it. */
export function makeServer(uri: string, { log, redactor, checkResponses, onlyBuiltIn, offAt }: ServerOptions): Server {
	const routes: RouteOptions = {
		payload: { maxBytes: BODY_LIMIT_BYTES, allow: 'application/json', timeout: 10_000 },
		validate: { failAction: refuse },
		// A range of a JSON text is useless; routes of files set `ranges: true`.
		response: { ranges: false, ...(checkResponses ? { failAction: 'error' } : { sample: 0 }) },
		cors: false,
		state: { parse: false, failAction: 'ignore' },
	}
	const server = hapi.server({
		autoListen: false,
		uri,
		// hapi's stop() would wait for sockets that this server never had, and end the process.
		operations: { cleanStop: false },
		// hapi would hold back a compressed event stream until its buffer is full.
		mime: { override: { 'text/event-stream': { compressible: false } } },
		debug: false,
		router: { stripTrailingSlash: true },
		routes,
	})
	// Removes hapi's defaults: hapi copies these settings five times per route, and adds its defaults to every route anyway.
	server.settings.routes = routes
	if (log.isLevelEnabled('debug'))
		server.events.on('response', (request) => {
			// Passed explicitly, since the context of the request may have ended.
			const request_id = request.raw.res.getHeader(REQUEST_ID)
			log.debug({ ...answered(request), request_id }, 'a request was answered')
		})
	server.events.on('route', (route) => {
		prepareSchemas(route)
		leaveLargeBody(route)
	})
	server.events.on('response', bodyUsed)
	server.events.on('response', (request) => logUnwritable(request, log))
	// One extension per point: each costs as much time as a whole stage of hapi.
	server.ext('onPreAuth', (request, h) => {
		if (!hasOneHost(request.raw.req)) throw notOneHost()
		if (!hasBody(request)) return h.continue
		refuseUntypedBody(request)
		if (onlyBuiltIn && takeReadyBody(request)) return h.continue
		answerOverlongBody(request)
		// On routes with authentication, the share is acquired after it, when its owner is known.
		if (server.auth.lookup(request.route)) return h.continue
		return shareForBody(request)?.then(() => h.continue) ?? h.continue
	})
	server.ext('onPostAuth', (request, h) => {
		const take = (): symbol => {
			parseBody(request)
			bodyRead(request)
			refuseDeepBody(request)
			return h.continue
		}
		return request.plugins.afterBody?.().then(take) ?? take()
	})
	server.ext('onPreResponse', (request, h) => {
		shapeError(request, log, offAt)
		shortenEchoes(request)
		hideNames(request, redactor)
		return h.continue
	})
	return server
}

export interface Answered {
	/** Lower case. */
	method: string
	/** As the route was declared, such as `/v1/agents/{name}`; null if there is no such route. */
	route: string | null
	status: number
	/** The time until the response was sent; for a stream, until it was opened. */
	ms: number
}

/** The outcome of a request, for a listener of hapi's event `response`. */
export function answered({ method, route, response, raw, info }: Request): Answered {
	return {
		method,
		route: isUnrouted({ route }) ? null : route.path,
		// A client that disconnected gets no answer; only hapi's response has the status that it would have had.
		status: isBoom(response) ? response.output.statusCode : raw.res.statusCode,
		ms: info.completed - info.received,
	}
}

/** Whether no route matches the request; `_special` is hapi's name for that. */
export function isUnrouted({ route }: Pick<Request, 'route'>): boolean {
	return (route.method as string) === '_special'
}

function notOneHost(): Fault {
	return new Fault('invalid_request', 'send exactly one Host header')
}

function refuse(_request: unknown, _h: unknown, error: Error | undefined): never {
	const { details = [] } = error as Partial<ValidationError>
	// A plugin's function may refuse a value by throwing any error. Our validators throw only errors with details: any other is a bug.
	if (details.length === 0 && error && culpritOf(error).isOurs) throw boomify(error, { statusCode: 500 })
	const unknown = details.filter(({ type }) => type === 'object.unknown')
	const omitted = new Set(unknown.slice(UNKNOWN_KEYS))
	const errors: FieldError[] = details
		.filter((detail) => !omitted.has(detail))
		.slice(0, ERROR_LIMIT)
		.map(({ path: keys, message }) => {
			const path = keys.map((key) => excerpt(String(key), KEY_LIMIT)).join('.')
			if (path === '') return { path, message: message.replace(/^value /, 'the body ') }
			return { path, message: message.replaceAll(keys.join('.'), () => path) }
		})
	if (omitted.size > 0) errors.push({ path: '', message: `${omitted.size} more keys are not allowed` })
	const message = errors.map((error) => error.message).join('; ') || 'the request is invalid'
	throw new Fault('invalid_request', message, { errors })
}

/** Whether the request announces a body. */
export function hasBody({ headers }: Request): boolean {
	return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Without a type, a web page of another origin could post the body without a CORS preflight. */
function refuseUntypedBody({ headers, route }: Request): void {
	// A route that reads the raw bytes checks them itself.
	if (route.settings.payload?.parse === false || headers['content-type'] !== undefined) return
	throw new Fault('unsupported_media_type', 'the body has no type; send the header content-type: application/json')
}

/** A body with half a million levels can be parsed, but overflows the stack of code that walks it. A wide one takes long. */
function refuseDeepBody(request: Request): void {
	const { payload } = request
	if (typeof payload !== 'object' || payload === null || Buffer.isBuffer(payload) || 'pipe' in payload) return
	let nodes = 0
	let level: object[] = [payload]
	for (let depth = 1; level.length > 0; depth++) {
		if (depth > DEPTH_LIMIT)
			throw new Fault('invalid_request', `the body is nested more than ${DEPTH_LIMIT} levels deep`)
		const next: object[] = []
		for (const node of level) {
			for (const child of Object.values(node)) {
				if (++nodes > VALUES_LIMIT) throw tooManyValues()
				if (typeof child === 'object' && child !== null) next.push(child)
			}
		}
		level = next
	}
	if (nodes > ALL_MISTAKES_LIMIT) refuseFirstMistake(request)
}

/** Stops at the first mistake. Runs before hapi's validation, which reports all of them. */
function refuseFirstMistake(request: Request): void {
	const schema = schemaOf(request.route, 'payload')
	if (!isSchema(schema)) return
	const { error } = withPreferences(schema, true).validate(request.payload)
	if (error) refuse(request, null, error)
}

/** Changes the error in place: a response from an `onPreResponse` extension would be final, and plugins may change answers further. */
function shapeError(request: Request, log: Logger, offAt: ServerOptions['offAt']): void {
	const { response } = request
	if (!isBoom(response)) return
	// For a path without a route, hapi runs no earlier stage.
	if (isUnrouted(request) && !hasOneHost(request.raw.req)) return void (response.output = toBoom(notOneHost()).output)
	if (response instanceof Fault) return void (response.output = toBoom(response).output)
	const status = response.output.statusCode
	if (status >= 500) logFailure(request, response, log)
	describe(response, byStatus[status] ?? (status < 500 ? 'invalid_request' : 'internal'))
	const clearer = clearerMessages[response.message] ?? tooLarge(response.message)
	if (clearer !== undefined) response.output.payload.message = clearer
	if (status === 404 && response.message === 'Not Found') {
		// The caller is not authenticated here, so nothing that it wrote is repeated.
		const missing = `there is no ${request.method.toUpperCase()} at this path`
		const off = isUnrouted(request) ? offAt?.(request.path) : undefined
		response.output.payload.message =
			off === undefined
				? `${missing}; GET /v1/openapi.json lists all routes`
				: `${missing} while the plugin ${off} is off; "svc config set plugins.${off} true" switches it on`
	}
}

function logFailure(request: Request, error: Error, log: Logger): void {
	const { owner: plugin } = culpritOf(error)
	const { method, path } = request
	const request_id = request.raw.res.getHeader(REQUEST_ID)
	log.error({ err: error, method, path, request_id, ...(plugin !== undefined && { plugin }) }, 'a request failed')
}

/** Logs an error of hapi after the last extension, such as an answer that is not JSON. Only these errors have no code. */
function logUnwritable(request: Request, log: Logger): void {
	if (request.raw.res.statusCode !== 500) return
	const error = (request.response as { _error?: Boom | null } | null)?._error
	if (error && !('code' in error.output.payload)) logFailure(request, error, log)
}

/** Errors from any code may repeat what the caller sent: names in the path, and texts of the query and the body. */
function shortenEchoes({ response, params, query, payload }: Request): void {
	if (!isBoom(response)) return
	const shown: { message: string; errors?: FieldError[] } = response.output.payload
	for (const text of [params, query, payload].flatMap(textsIn)) {
		if (text.length <= ECHO_LIMIT) continue
		const shorten = (message: string): string => message.replaceAll(text, () => excerpt(text, ECHO_LIMIT))
		shown.message = shorten(shown.message)
		for (const error of shown.errors ?? []) error.message = shorten(error.message)
	}
}

function textsIn(value: unknown): string[] {
	if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return []
	return Object.values(value).filter((item) => typeof item === 'string')
}

/** Hides names of secrets from callers who may not see them. Streams do that themselves. */
function hideNames({ auth, response }: Request, redactor: Redactor): void {
	const clearance = redactor.clearanceOf((auth.credentials?.scope as string[] | undefined) ?? [])
	if (clearance.seesNames) return
	if (isBoom(response)) response.output.payload = clearance.data(response.output.payload)
	else if (response.variety === 'plain') Object.assign(response, { source: clearance.data(response.source as unknown) })
}

/** Replacements for messages of hapi that do not state what to change. */
const clearerMessages: Record<string, string> = {
	'Unsupported Media Type': 'the body has another type; send JSON with the header content-type: application/json',
	'Invalid request payload JSON format': 'the body is not valid JSON; send one JSON object',
}

const TOO_LARGE = /^Payload content length greater than maximum allowed: (\d+)$/

/** Replaces hapi's message, which has a number without a unit. */
function tooLarge(message: string): string | undefined {
	const limit = Number(TOO_LARGE.exec(message)?.[1] ?? Number.NaN)
	if (Number.isNaN(limit)) return undefined
	const size = limit % MIB_BYTES === 0 ? `${limit / MIB_BYTES} MiB` : `${limit} bytes`
	const advice = limit === BODY_LIMIT_BYTES ? '; upload files first and refer to them' : ''
	return `the body may have at most ${size}${advice}`
}

const byStatus: Partial<Record<number, FaultCode>> = {
	400: 'invalid_request',
	401: 'unauthorized',
	403: 'forbidden',
	404: 'not_found',
	405: 'method_not_allowed',
	408: 'invalid_request',
	409: 'conflict',
	413: 'payload_too_large',
	415: 'unsupported_media_type',
	429: 'rate_limited',
	503: 'unavailable',
}
