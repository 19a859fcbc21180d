/** Sends a request to a model server, for every dialect. */
import { Agent, EnvHttpProxyAgent } from 'undici'
import type { Dispatcher } from 'undici'
import type { ModelOrder } from '../order.ts'
import { ModelError } from './provider.ts'
import { ResponseHandler } from './read-response.ts'
import type { ResponseContent } from './read-response.ts'

export interface Sent {
	/** Of the order's address, such as `/chat/completions`. */
	path: string
	/** The dialect's own, in lower case; those of the order have precedence. */
	headers: Record<string, string>
	/** Sent as JSON. */
	body: object
}

/** The time limit of an order is the caller's: a model may think for longer than any limit of a socket. */
const limits = { headersTimeout: 0, bodyTimeout: 0, allowH2: false }
/** As Node itself: variables such as HTTPS_PROXY count where NODE_USE_ENV_PROXY is 1. */
const dispatcher = process.env.NODE_USE_ENV_PROXY === '1' ? new EnvHttpProxyAgent(limits) : new Agent(limits)

/**
 * Posts the body to the order's address, or `standard`, and passes each event of the answer to `take` as it comes. Follows no
 * redirect, which would carry the conversation to an address that is not configured. `onSent` gets the body.
 *
 * Rejects with a ModelError for an invalid address or header and for a response that is too long, StreamError for any status
 * but success, ConnectionFailure if there was no response, SyntaxError for an event that is not JSON, what `take` throws, the
 * signal's reason, and else with what broke the response off.
 */
export function send(
	order: ModelOrder,
	standard: string,
	{ path, headers, body }: Sent,
	signal: AbortSignal,
	take: (event: unknown) => void,
	onSent?: (body: string) => void,
): Promise<ResponseContent> {
	const url = urlOf(order, standard, path)
	const sent: Record<string, string> = {
		accept: 'application/json',
		// What compresses an answer holds its pieces back.
		'accept-encoding': 'identity',
		'content-type': 'application/json',
		'user-agent': 'svc-gateway',
		...headers,
	}
	for (const [name, value] of Object.entries(order.headers ?? {})) sent[name.toLowerCase()] = value
	const text = wellFormed(jsonOf(body))
	const handler = new ResponseHandler(signal, take)
	const options: Dispatcher.DispatchOptions = {
		origin: url.origin,
		path: url.pathname + url.search,
		method: 'POST',
		headers: sent,
		body: text,
	}
	onSent?.(text)
	try {
		dispatcher.dispatch(options, handler)
	} catch (error) {
		handler.fail(error)
	}
	return handler.content
}

const toolTexts = new WeakMap<object, string>()

/** The tools are most of a request, and mostly the same list as in the one before: their JSON is made once. */
function jsonOf(body: object): string {
	const { tools, ...others } = body as { tools?: unknown }
	if (!Array.isArray(tools)) return JSON.stringify(body)
	let text = toolTexts.get(tools)
	if (text === undefined) toolTexts.set(tools, (text = JSON.stringify(tools)))
	return `${JSON.stringify({ ...others, tools: [] }).slice(0, -'[]}'.length)}${text}}`
}

/** JSON has nothing but a lone half of a surrogate pair in this form; the backslashes before it are in pairs. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g

/** Many servers refuse half of a surrogate pair, and with it each further request of the conversation. */
function wellFormed(json: string): string {
	return json.includes('\\ud') ? json.replace(LONE_SURROGATE, '$1\\ufffd') : json
}

/** Of a server that needs no key, the request has none. */
export function bearer({ api_key }: ModelOrder): Record<string, string> {
	return api_key ? { authorization: `Bearer ${api_key}` } : {}
}

function urlOf({ base_url, query = {} }: ModelOrder, standard: string, path: string): URL {
	const address = base_url ?? standard
	if (!URL.canParse(address)) throw rejected(`"${address}" is not an address`)
	const url = new URL(address)
	if (!/^https?:$/.test(url.protocol)) throw rejected(`"${address}" is not an HTTP address`)
	if (url.username !== '' || url.password !== '')
		throw rejected('the address contains a user name or a password, which belong in headers')
	const [own = '', search] = path.split('?')
	url.pathname = url.pathname.replace(/\/$/, '') + own
	for (const [name, value] of new URLSearchParams(search)) url.searchParams.set(name, value)
	for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
	return url
}

function rejected(what: string): ModelError {
	const message = `${what}; set base_url of the provider in gateway.yaml`
	return new ModelError('model_rejected', message)
}
