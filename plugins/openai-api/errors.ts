/** Errors in OpenAI's format: `{error: {message, type, param, code}}`. */
import { isBoom } from '@hapi/boom'
import type { Boom } from '@hapi/boom'
import type { Request, Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault, statusOf } from '../../core/errors.ts'
import type { FaultCode, FieldError } from '../../core/errors.ts'
import { isUnrouted } from '../../core/http/server.ts'
import { explainMissing } from '../shared/missing-route.ts'
import { openAiPaths } from './settings.ts'

export const failure = Joi.object({
	error: Joi.object({
		message: Joi.string().required(),
		type: Joi.valid(
			'invalid_request_error',
			'authentication_error',
			'permission_error',
			'rate_limit_error',
			'server_error',
		).required(),
		param: Joi.string().allow(null).required().description('The invalid field, such as messages[0].content.'),
		code: Joi.string().required().description("OpenAI's code if there is one, otherwise the gateway's."),
	}).required(),
})
	.id('OpenAiError')
	.example({
		error: {
			message: 'there is no agent "ada"; POST /v1/agents creates one',
			type: 'invalid_request_error',
			param: 'model',
			code: 'model_not_found',
		},
	})

/** The paths of requests from clients with a wrong base URL: without `/v1`, with two of them, or with a slash after it. */
const besideBase = /^(?:\/v1)?(?:\/v1|\/)?\/(?:chat\/completions|completions|embeddings|models|responses)(?:\/|$)/

/** Converts the errors of this plugin's routes, and of unknown OpenAI paths, to OpenAI's format. */
export function shapeErrors(server: Server, plugin: string): void {
	server.ext('onPreResponse', (request, h) => {
		const { response, route } = request
		if (!isBoom(response)) return h.continue
		if (isUnrouted(request) && openAiPaths.test(request.path)) explain(request, response)
		else if (isUnrouted(request) && besideBase.test(request.path)) explainBase(request, response)
		else if (route.realm.plugin !== plugin) return h.continue
		reshape(response)
		return h.continue
	})
}

/** An error about a field. `param`: its path in OpenAI's notation, such as `messages[0].content`. */
export function paramError(param: string, message: string, code: FaultCode = 'invalid_request'): Fault {
	return new Fault(code, message, { errors: [{ path: param, message }] })
}

function errorBody(given: Codes, message: string, status: number, param: string | null): object {
	return { error: { message, type: typeOf(status), param, code: codeFor(given, param) } }
}

interface Codes {
	code: string
	provider_code?: string | undefined
	provider_status?: number | undefined
}

/** Statuses with which a provider refuses an invalid request. Others concern its key, its model or the provider itself. */
const REFUSALS: ReadonlySet<number | undefined> = new Set([400, 413, 415, 422])

/** 400 for a request that the client must change, since many libraries retry after 5xx. */
function statusFor({ code, provider_status }: Codes, status: number): number {
	const isRefused = code === 'model_rejected' && REFUSALS.has(provider_status)
	return isRefused || code === 'context_too_long' || code === 'model_filtered' ? 400 : status
}

/** OpenAI's code for an error if there is one. `param`: the invalid field. */
function codeFor({ code, provider_code }: Codes, param: string | null = null): string {
	return provider_code ?? codes[`${code} ${param}`] ?? codes[code] ?? code
}

/** The code in a failed response. If the request must change, it is one of OpenAI's: clients retry after other codes. */
export function failureCode(error: Codes): string {
	if (error.code === 'context_too_long') return codeFor({ code: error.code })
	return statusFor(error, 500) === 400 ? 'invalid_prompt' : codeFor(error)
}

/** The body of an error in a stream that has begun. */
export function bodyOf(fault: Fault): object {
	return errorBody(fault, fault.message, statusFor(fault, statusOf(fault.code)), null)
}

/** OpenAI's codes, by the gateway's code, or by its code and the invalid field. */
const codes: Record<string, string> = {
	unauthorized: 'invalid_api_key',
	rate_limited: 'rate_limit_exceeded',
	model_rate_limited: 'rate_limit_exceeded',
	context_too_long: 'context_length_exceeded',
	model_filtered: 'content_filter',
	'not_found model': 'model_not_found',
	'not_found previous_response_id': 'previous_response_not_found',
}

function typeOf(status: number): string {
	if (status === 401) return 'authentication_error'
	if (status === 403) return 'permission_error'
	if (status === 429) return 'rate_limit_error'
	return status < 500 ? 'invalid_request_error' : 'server_error'
}

function explain(request: Request, response: Boom): void {
	if (response.message !== 'Not Found') return
	explainMissing(request, response, 'docs/openai-api.md')
	const { output } = response
	if (output.statusCode === 405) Object.assign(output.payload, { code: 'method_not_allowed' satisfies FaultCode })
}

function explainBase({ method }: Request, { message, output }: Boom): void {
	if (message !== 'Not Found') return
	output.payload.message = `there is no ${method.toUpperCase()} at this path; the base URL of this API must end in /v1, once and without a slash after it`
}

function reshape(response: Boom): void {
	const { output } = response
	const { message, code, errors } = output.payload as { message: string; code?: string; errors?: FieldError[] }
	const param = errors?.[0] && errors[0].path !== '' ? paramOf(errors[0].path) : null
	const { provider_code, provider_status } = response as Partial<Fault>
	const given = { code: code ?? 'internal', provider_code, provider_status }
	const statusCode = statusFor(given, output.statusCode)
	Object.assign(output, { statusCode, payload: errorBody(given, message, statusCode, param) })
}

/** Converts joi's path with dots to OpenAI's notation. */
function paramOf(path: string): string {
	return path.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]')
}
