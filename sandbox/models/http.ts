/** Sends a request to a model server, for every dialect. */
import { Agent, EnvHttpProxyAgent } from 'undici'
import type { Dispatcher } from 'undici'
import type { ModelOrder } from '../order.ts'
import { ModelError } from './provider.ts'
import { ResponseHandler } from './read-response.ts'
import type { ResponseContent } from './read-response.ts'

export interface Sent {
	/** Appended to the order's address, such as `/chat/completions`. */
	path: string
	/** Headers of the dialect, in lower case; those of the order take precedence. */
	headers: Record<string, string>
	/** Sent as JSON. */
	body: object
}

/** No timeouts of the socket: the caller enforces the time limit of an order. */
const limits = { headersTimeout: 0, bodyTimeout: 0, allowH2: false }
/** As in Node itself, variables such as HTTPS_PROXY apply if NODE_USE_ENV_PROXY is 1. */
const dispatcher = process.env.NODE_USE_ENV_PROXY === '1' ? new EnvHttpProxyAgent(limits) : new Agent(limits)

/**
 * Posts the body to the order's address, or `standard`, and passes each event of the answer to `take` at once. Does not follow
 * redirects, which would send the conversation to an address that is not configured. `onSent` gets the body.
 *
 * Rejects with a ModelError for an invalid address or header and for a response that is too long, StreamError for a status other
 * than success, ConnectionFailure if there was no response, SyntaxError for an event that is not JSON, an error of `take`, the
 * signal's reason, or the error that interrupted the response.
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
		// Compression would buffer the stream.
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

/** The JSON of tools is cached: they are most of a request, and usually the same list as in the previous one. */
function jsonOf(body: object): string {
	const { tools, ...others } = body as { tools?: unknown }
	if (!Array.isArray(tools)) return JSON.stringify(body)
	let text = toolTexts.get(tools)
	if (text === undefined) toolTexts.set(tools, (text = JSON.stringify(tools)))
	return `${JSON.stringify({ ...others, tools: [] }).slice(0, -'[]}'.length)}${text}}`
}

/** JSON.stringify writes only lone halves of a surrogate pair in this form. An even number of backslashes may precede it. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g

/** Replaces lone halves of surrogate pairs: many servers refuse them, and then every further request of the conversation. */
function wellFormed(json: string): string {
	return json.includes('\\ud') ? json.replace(LONE_SURROGATE, '$1\\ufffd') : json
}

/** The header with the key; none if there is no key. */
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
