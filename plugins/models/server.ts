/** Tests the address, the key and a model of a model server. */
import type { Reply, Request } from '../../core/cli/doctor/contract.ts'
import { isFault } from '../../core/errors.ts'
import { fieldsOf } from '../../core/util/is-object.ts'
import { isPrintable } from '../../core/util/printable.ts'
import { dialects, isKey } from './dialects.ts'
import type { ServerKind } from './dialects.ts'

export interface Server {
	kind: ServerKind
	base_url: string
	api_key?: string | undefined
}

/**
 * - `ok`: `models` is absent if the server does not list them
 * - `unreachable`: no response, or not one of a model server
 * - `denied`: it requires another key
 * - `refused`: it accepts the key and refuses the call
 */
export type ServerVerdict =
	| { state: 'ok'; models?: string[] }
	| { state: 'unreachable' | 'denied' | 'refused'; message: string }

const LIST_TIMEOUT_MS = 10_000
/** A local server may have to load the model first. */
const CALL_TIMEOUT_MS = 60_000
const MAX_MODELS = 2_000
const MAX_MESSAGE = 500

/** Sends a request for at most `timeout_ms`. Throws a fault if there is no answer. */
export type Ask = (url: string, request: Request & { timeout_ms: number }) => Promise<Reply>

/** The models that the server lists: at most 10 s, 2,000 names. */
export async function listModels(server: Server, ask: Ask): Promise<ServerVerdict> {
	const { list, names } = dialects[server.kind]
	const reply = await call(server, ask, list, { timeout_ms: LIST_TIMEOUT_MS })
	if ('state' in reply) return reply
	if (reply.status >= 300 && ![404, 405, 501].includes(reply.status)) return failureOf(server, reply)
	const models = reply.status < 300 ? names(reply.body).filter(isName).slice(0, MAX_MODELS).sort() : []
	return { state: 'ok', ...(models.length > 0 && { models: [...new Set(models)] }) }
}

/** One short call, at most 60 s. */
export async function tryModel(server: Server, model: string, ask: Ask): Promise<ServerVerdict> {
	const { trial, isAnswer } = dialects[server.kind]
	const { path, body } = trial(model, 'Reply with the word "ready" and nothing else.')
	const reply = await call(server, ask, path, { method: 'POST', body, timeout_ms: CALL_TIMEOUT_MS }, model)
	if ('state' in reply) return reply
	if (reply.status !== 200) return failureOf(server, reply)
	if (isAnswer(reply.body)) return { state: 'ok' }
	return {
		state: 'unreachable',
		message: `${server.base_url} answers, but not as a server of kind ${server.kind}; is this the address of its API, with the version?`,
	}
}

async function call(
	{ kind, base_url, api_key }: Server,
	ask: Ask,
	path: string,
	request: Request & { timeout_ms: number },
	model?: string,
): Promise<Reply | Exclude<ServerVerdict, { state: 'ok' }>> {
	if (api_key !== undefined && !isKey(api_key))
		return {
			state: 'denied',
			message: 'this cannot be a key: a key is printable ASCII without spaces or line breaks; give another one',
		}
	try {
		return await ask(base_url + path, { ...request, headers: dialects[kind].headers(api_key) })
	} catch (error) {
		if (!isFault(error)) throw error
		// The server answered the request for its list of models just before, so it can be reached.
		const isSlow = model !== undefined && isFault(error, 'fetch_timeout')
		const message = isSlow
			? `${model} at ${base_url} is too slow: ${error.message}; if the model was being loaded, try again. Runs wait longer: timeout_s of the provider, 120 s by default`
			: `${base_url} does not answer: ${error.message}`
		return { state: 'unreachable', message }
	}
}

function failureOf({ base_url, api_key }: Server, { status, body }: Reply): ServerVerdict {
	const reason = messageIn(body)
	// Redacted before it is cut, so that no part of the key remains.
	const text = api_key !== undefined && api_key.length > 3 ? reason.replaceAll(api_key, '[redacted]') : reason
	const quote = text === '' ? '' : `: ${text.slice(0, MAX_MESSAGE)}`
	if (status === 401 || status === 403) {
		const what = api_key === undefined ? 'requires a key' : 'refuses the key'
		return { state: 'denied', message: `${base_url} ${what} (${status})${quote}` }
	}
	if (status < 400)
		return { state: 'unreachable', message: `${base_url} redirects to another address (${status}); use that address` }
	const state = status >= 500 ? 'unreachable' : 'refused'
	return { state, message: `${base_url} answers with an error (${status})${quote}` }
}

/** OpenAI returns `{error: {message}}`; others have the text in `error`, `message` or `detail`. */
function messageIn(body: unknown): string {
	const { error, message, detail } = fieldsOf(body)
	return [fieldsOf(error).message, error, message, detail].find((one) => typeof one === 'string') ?? ''
}

/** A name that cannot be displayed cannot be chosen. */
function isName(name: unknown): name is string {
	return typeof name === 'string' && name !== '' && name.length <= 256 && isPrintable(name)
}
