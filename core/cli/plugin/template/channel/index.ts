/**
 * The channel new-plugin: people talk to agents on a chat platform. docs/writing-a-channel.md of the gateway describes what an
 * adapter must do. This one uses a small HTTP API, which platform.ts implements for the tests. Replace the requests below with
 * those of your platform, and platform.ts with a server that speaks its protocol.
 *
 *     svc plugins test     runs the tests of this folder
 *     svc plugins check    finds problems before the plugin is switched on
 */
import type { ChannelAdapter, Connection, IncomingMessage, Link, Plugin } from 'svc-gateway'

interface Settings {
	api_root: string
}

export default {
	name: 'new-plugin',
	version: '0.1.0',
	contract: '0.2',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', adapter),
} satisfies Plugin

export const adapter: ChannelAdapter<Settings> = {
	type: 'new_plugin',
	label: 'new-plugin',
	can: { formats: [{ markup: 'plain', max_length: 4000 }] },
	config: (joi) => joi.object({ api_root: joi.string().required() }),
	connect,
}

/** The platform's response to a request for updates; `cursor` is the position after them. */
interface Updates {
	updates: Pick<IncomingMessage, 'id' | 'chat' | 'sender' | 'text'>[]
	cursor: string
}

/** Time limit of a request. The platform answers one that waits for messages within a minute. */
const TIMEOUT_MS = 90_000

type Call = <T>(method: 'GET' | 'POST', path: string, body?: object) => Promise<T>

async function connect(link: Link<Settings>): Promise<Connection> {
	// The gateway aborts `link.signal` before it calls `close`; both end open requests.
	const closing = new AbortController()
	const signal = AbortSignal.any([link.signal, closing.signal])
	const call: Call = (method, path, body) => request(link, signal, method, path, body)

	const { name } = await call<{ name: string }>('GET', 'me')
	let cursor = await link.cursor()
	if (cursor === null) {
		// The channel's first connection: earlier messages are not for the bot.
		cursor = (await call<Updates>('GET', 'updates')).cursor
		await link.advance(cursor)
	}
	const reading = read(link, signal, call, cursor)
	return {
		name,
		// The platform sends one message per nonce, so an attempt with an unknown outcome can be repeated.
		send: ({ chat, text, nonce }) => call<{ id: string }>('POST', 'messages', { chat: chat.id, text, nonce }),
		async close() {
			closing.abort()
			await reading
		},
	}
}

/** Passes on messages until the connection ends. The request for the next messages confirms the previous ones. */
async function read(link: Link<Settings>, signal: AbortSignal, call: Call, from: string): Promise<void> {
	try {
		for (let at = from; !signal.aborted;) {
			const { updates, cursor } = await call<Updates>('GET', `updates?after=${encodeURIComponent(at)}`)
			for (const [n, message] of updates.entries())
				await link.receive({ ...message, addressed: true, cursor: n === updates.length - 1 ? cursor : at })
			at = cursor
		}
	} catch (error) {
		if (!signal.aborted) link.lost(error)
	}
}

/** The code of an error tells the gateway what to do. An error without a code means: the platform may have accepted the request. */
async function request<T>(
	link: Link<Settings>,
	signal: AbortSignal,
	method: string,
	path: string,
	body?: object,
): Promise<T> {
	const { error } = link
	const address = `${link.config.api_root}/${path}`
	const response = await fetch(address, {
		method,
		headers: { authorization: `Bearer ${link.token}`, 'content-type': 'application/json' },
		...(body && { body: JSON.stringify(body) }),
		// Also for a request that waits for messages: without a limit, a silent network looks connected.
		signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
	}).catch((failure: Error) => {
		const { message } = (failure.cause as Error | undefined) ?? failure
		throw new Error(`${address} did not answer: ${message}`, { cause: failure })
	})
	// During an outage a proxy answers with a page instead.
	const answer = (await response.json().catch((failure: Error) => {
		const what = failure instanceof SyntaxError ? 'without JSON' : `incompletely: ${failure.message}`
		throw new Error(`${address} answered ${response.status} ${what}`, { cause: failure })
	})) as T & { message?: string; retry_after_ms?: number }
	if (response.ok) return answer
	const { message = `the platform answered ${response.status}`, retry_after_ms = 1000 } = answer
	if (response.status === 401) {
		const refusal = error('refused', 'the platform does not accept the token; store a valid one')
		link.lost(refusal) // so that a message that is being sent waits for the next token
		throw refusal
	}
	if (response.status === 403) throw error('refused', message)
	if (response.status === 429) throw error('limited', message, { retry_after_ms })
	if (response.status < 500) throw error('failed', message)
	throw new Error(message)
}
