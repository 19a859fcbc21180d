/** One hapi server of a generation: limits, the shape of errors, and what every answer carries. */
import { isBoom } from '@hapi/boom'
import hapi from '@hapi/hapi'
import type { Request, ResponseToolkit, Server } from '@hapi/hapi'
import Joi from 'joi'
import { Fault, describe, toBoom } from './errors.ts'
import type { FaultCode, FieldError } from './errors.ts'
import type { Logger } from './log.ts'
import type { Redactor } from './redactor.ts'
import { requestIdOf } from './request-id.ts'

const BODY_LIMIT_BYTES = 1024 * 1024
/** Wrong fields that an answer names. */
const ERROR_LIMIT = 50
/** Characters of a request's path, or of a name in it, that an error repeats. */
const PATH_LIMIT = 200
const DEPTH_LIMIT = 64
const NODE_LIMIT = 100_000
/** Values of a body of which all mistakes are told; a hundred thousand mistakes would take a second to tell of. */
const ALL_MISTAKES_LIMIT = 2_000

export interface ServerOptions {
	log: Logger
	redactor: Redactor
	/** Compare every answer with its route's declared schema and fail where they differ; tests do that. */
	checkResponses: boolean
}

/** A server that listens nowhere: the front hands it requests. */
export function makeServer(uri: string, { log, redactor, checkResponses }: ServerOptions): Server {
	const server = hapi.server({
		autoListen: false,
		uri,
		// Without a listener of its own, hapi's stop() would wait for sockets that it never had and end the process.
		operations: { cleanStop: false },
		// hapi would hold back a compressed event stream until its buffer is full.
		mime: { override: { 'text/event-stream': { compressible: false } } },
		debug: false,
		router: { stripTrailingSlash: true },
		routes: {
			payload: { maxBytes: BODY_LIMIT_BYTES, allow: 'application/json', timeout: 10_000 },
			validate: { options: { abortEarly: false, errors: { wrap: { label: false } } }, failAction: refuse },
			response: checkResponses ? { failAction: 'error' } : { sample: 0 },
			security: { hsts: false, xframe: 'deny', noOpen: false, referrer: 'no-referrer' },
			cors: false,
			state: { parse: false, failAction: 'ignore' },
		},
	})
	if (log.isLevelEnabled('debug')) logAnswers(server, log)
	server.ext('onPreAuth', refuseUntypedBody)
	server.ext('onPostAuth', refuseDeepBody)
	server.ext('onPreResponse', (request, h) => {
		shapeError(request, log)
		shortenEchoes(request)
		hideSecrets(request.response, redactor, request.app.reveals)
		return h.continue
	})
	return server
}

export interface Answered {
	/** Lower case. */
	method: string
	/** As the route was declared, such as `/v1/agents/{name}`; null where there is no such route. */
	route: string | null
	status: number
	/** Until the answer had gone; of a stream, until it was open. */
	ms: number
}

/** What became of a request, for a listener of hapi's event `response`. */
export function answered({ method, route, response, raw, info }: Request): Answered {
	return {
		method,
		route: (route.method as string) === '_special' ? null : route.path,
		// A client that left early gets no answer, and only hapi knows which one it would have been.
		status: isBoom(response) ? response.output.statusCode : raw.res.statusCode,
		ms: info.completed - info.received,
	}
}

/** The id is said, since by now it may be over with the request. */
function logAnswers(server: Server, log: Logger): void {
	server.events.on('response', (request) => {
		log.debug({ ...answered(request), request_id: requestIdOf(request.raw.res) }, 'a request was answered')
	})
}

/** joi's complaints as our error body. */
function refuse(_request: Request, _h: ResponseToolkit, error?: Error): never {
	const details =
		(error as (Error & { details?: { path: (string | number)[]; message: string }[] }) | undefined)?.details ?? []
	const errors: FieldError[] = details.slice(0, ERROR_LIMIT).map(({ path, message }) => ({
		path: path.join('.'),
		message: path.length > 0 ? message : message.replace(/^value /, 'the body '),
	}))
	const message = errors.map((one) => one.message).join('; ') || (error?.message ?? 'the request is invalid')
	throw new Fault('invalid_request', message, { errors })
}

/** A body without a type is one that a foreign web page can post without being asked first. */
function refuseUntypedBody(request: Request, h: ResponseToolkit): symbol {
	const { headers } = request
	// Whoever takes the bytes as they come judges them by itself.
	if (request.route.settings.payload?.parse === false) return h.continue
	const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
	if (hasBody && headers['content-type'] === undefined) {
		throw new Fault('unsupported_media_type', 'the body has no type; send the header content-type: application/json')
	}
	return h.continue
}

/** A body nested half a million deep parses, and then overflows the stack of whatever walks it; a wide one takes time. */
function refuseDeepBody(request: Request, h: ResponseToolkit): symbol {
	const { payload } = request
	if (typeof payload !== 'object' || payload === null || Buffer.isBuffer(payload) || 'pipe' in payload)
		return h.continue
	let nodes = 0
	let level: object[] = [payload]
	for (let depth = 1; level.length > 0; depth++) {
		if (depth > DEPTH_LIMIT)
			throw new Fault('invalid_request', `the body is nested more than ${DEPTH_LIMIT} levels deep`)
		const next: object[] = []
		for (const node of level) {
			for (const child of Object.values(node)) {
				if (++nodes > NODE_LIMIT) throw new Fault('invalid_request', `the body holds more than ${NODE_LIMIT} values`)
				if (typeof child === 'object' && child !== null) next.push(child)
			}
		}
		level = next
	}
	if (nodes > ALL_MISTAKES_LIMIT) refuseFirstMistake(request, h)
	return h.continue
}

/** Before hapi looks for all of them. */
function refuseFirstMistake(request: Request, h: ResponseToolkit): void {
	const { payload: schema, options } = request.route.settings.validate ?? {}
	if (!Joi.isSchema(schema)) return
	const { error } = schema.validate(request.payload, { ...options, abortEarly: true })
	if (error) refuse(request, h, error)
}

/** In place: what an `onPreResponse` answers with would be the last word, and plugins may shape answers further. */
function shapeError(request: Request, log: Logger): void {
	const { response } = request
	if (!isBoom(response)) {
		response.header('x-content-type-options', 'nosniff')
		return
	}
	if (response instanceof Fault) {
		response.output = toBoom(response).output
		return
	}
	const status = response.output.statusCode
	if (status >= 500) log.error({ err: response, method: request.method, path: request.path }, 'a request failed')
	describe(response, codeOf(status))
	const plainer = plainly[response.message]
	if (plainer !== undefined) response.output.payload.message = plainer
	if (status === 404 && response.message === 'Not Found') {
		response.output.payload.message = `there is no ${request.method.toUpperCase()} ${shownPath(request.path)}; GET /v1/openapi.json lists what there is`
	}
}

/** Errors repeat names from the path, whoever makes them. */
function shortenEchoes({ response, params }: Request): void {
	if (!isBoom(response)) return
	const payload: { message: string; errors?: FieldError[] } = response.output.payload
	for (const name of Object.values((params ?? {}) as Record<string, string>)) {
		if (name.length <= PATH_LIMIT) continue
		const shorten = (text: string): string => text.replaceAll(name, () => shownPath(name))
		payload.message = shorten(payload.message)
		for (const one of payload.errors ?? []) one.message = shorten(one.message)
	}
}

/** A request's path, or a part of it, as an answer may repeat it: its sender chooses how long it is. */
export function shownPath(path: string): string {
	return path.length > PATH_LIMIT ? `${path.slice(0, PATH_LIMIT).toWellFormed()}…` : path
}

/** Streams are made of events, which hold none. */
function hideSecrets(answer: Request['response'], redactor: Redactor, except?: ReadonlySet<string>): void {
	if (isBoom(answer)) answer.output.payload = redactor.data(answer.output.payload, 'response')
	else if (answer.variety === 'plain')
		Object.assign(answer, { source: redactor.data(answer.source as unknown, 'response', except) })
}

/** What hapi says in words that do not tell what to change. */
const plainly: Record<string, string> = {
	'Unsupported Media Type': 'the body has another type; send JSON with the header content-type: application/json',
	'Invalid request payload JSON format': 'the body is not valid JSON; send one JSON object',
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

function codeOf(status: number): FaultCode {
	return byStatus[status] ?? (status < 500 ? 'invalid_request' : 'internal')
}
