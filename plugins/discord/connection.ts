import { GatewayDispatchEvents } from 'discord.js'
import { within } from '../../core/util/deadline.ts'
import { unlessAborted } from '../../core/util/unless-aborted.ts'
import { fetcherFor, guardedFetch } from '../../core/fetch/guarded-fetch.ts'
import type { ChatRef, Connection, Link, LoadOptions } from '../channels/adapter.ts'
import { openClient, UPLOAD_MS } from './client.ts'
import { TOKEN } from './config.ts'
import type { DiscordConfig } from './config.ts'
import { Closed, errorOf, isUnauthorized } from './errors.ts'
import { openIntake } from './intake.ts'
import { outgoingOf } from './outgoing.ts'
import { isSnowflake } from './snowflake.ts'

const LOGIN_MS = 45_000
/** Time for discord.js to restore a connection. After that the gateway reconnects with growing delays, which discord.js lacks. */
const RECOVER_MS = 30_000
const CLOSE_MS = 5_000
const DOWNLOAD_MS = 20_000
/** Limit of a response. The largest is a page of a hundred messages. */
const RESPONSE_LIMIT = 8 * 1024 * 1024

const DISALLOWED_INTENTS = 4014
const NO_CONTENT =
	'"Message Content Intent" is off: only direct messages and messages that mention the bot can be read. To receive the others, switch it on in the developer portal (Bot, Privileged Gateway Intents); it applies from the next connection on'

/** See `ChannelAdapter.connect`. If the privileged intent is refused, connects without it and reports that. */
export async function connect(link: Link<DiscordConfig>, { recover_ms = RECOVER_MS } = {}): Promise<Connection> {
	if (!TOKEN.test(link.token))
		throw link.error(
			'refused',
			'the secret is not a bot token: it contains white space or other characters that no token has',
		)
	try {
		return await open(link, true, recover_ms).catch((error: unknown) => {
			if (error instanceof Closed && error.code === DISALLOWED_INTENTS) return open(link, false, recover_ms)
			throw error
		})
	} catch (error) {
		throw errorOf(error, link.error)
	}
}

async function open(link: Link<DiscordConfig>, message_content: boolean, recover_ms: number): Promise<Connection> {
	const warning = message_content ? undefined : NO_CONTENT
	const closing = new AbortController()
	const failed = Promise.withResolvers<never>()
	failed.promise.catch(() => {}) // nothing awaits it after the connection is open
	let isOpen = false
	let recovering: NodeJS.Timeout | undefined
	const lost = (error: unknown): void => {
		if (!isOpen) failed.reject(error)
		else if (!closing.signal.aborted) link.lost(errorOf(error, link.error))
	}

	const fetcher = fetcherFor(link.config.api_root, {
		// The address was checked when the channel was created, and may be a private one.
		policy: { protocols: ['http:', 'https:'], private_first: true },
		max_bytes: RESPONSE_LIMIT,
		timeout_ms: UPLOAD_MS,
		redirects: 0,
	})
	const { client, end } = openClient({
		api_root: link.config.api_root,
		fetcher,
		message_content,
		onLeaving() {
			if (!isOpen || closing.signal.aborted || recovering) return
			link.status('reconnecting', 'the connection to Discord was lost')
			recovering = setTimeout(
				lost,
				recover_ms,
				new Error(`Discord's gateway was not reached for ${recover_ms / 1000} s`),
			)
		},
	})
	const close = async (): Promise<void> => {
		closing.abort(new Error('the connection was closed'))
		clearTimeout(recovering)
		await within(CLOSE_MS, 'Discord', end()).catch((error: unknown) => link.log.debug({ err: error }, 'closing'))
		await fetcher[Symbol.asyncDispose]()
	}

	// Without a listener, an error in a listener of discord.js would end the process.
	client.on('error', (error) => link.log.warn({ err: error }, 'discord.js'))
	client.on('warn', (message) => link.log.warn(`discord.js: ${message}`))
	client.on('shardError', (error) => link.log.debug({ err: error }, "Discord's gateway"))
	client.on('shardDisconnect', ({ code }) => {
		// The intent was switched off while connected. The next connection works without it.
		const isContentMissing = isOpen && message_content && code === DISALLOWED_INTENTS
		lost(isContentMissing ? new Error(NO_CONTENT) : new Closed(code))
	})
	for (const event of [GatewayDispatchEvents.Ready, GatewayDispatchEvents.Resumed])
		client.ws.on(event, () => {
			clearTimeout(recovering)
			recovering = undefined
			if (isOpen) link.status('connected', warning)
		})
	const { saw, sender } = outgoingOf(client, requestsIn(link, lost))
	openIntake({ client, link, signal: closing.signal, saw, lost })

	try {
		link.signal.throwIfAborted()
		const opening = Promise.race([client.login(link.token), failed.promise])
		await within(LOGIN_MS, "Discord's gateway", unlessAborted(link.signal, opening))
	} catch (error) {
		await close()
		throw error
	}
	isOpen = true
	// Reported later, since the status becomes `connected` without a warning when this function returns.
	if (warning !== undefined) setImmediate(() => link.status('connected', warning))
	const bot = client.user
	return {
		...(bot && { name: `@${bot.tag}` }),
		...sender,
		load: (url, options) => download(link.config, url, options),
		close,
	}
}

/** Converts the errors of a request about a chat to those of an adapter. */
function requestsIn(link: Link<DiscordConfig>, lost: (error: unknown) => void) {
	return async <T>({ id }: ChatRef, request: () => Promise<T>): Promise<T> => {
		// A caller chose the id when it bound the chat, and the id becomes part of a request's path.
		if (!isSnowflake(id))
			throw link.error('refused', `${JSON.stringify(id)} is not the id of a Discord channel, which is a number`)
		try {
			return await request()
		} catch (error) {
			if (!isUnauthorized(error)) throw errorOf(error, link.error)
			// The message can still be sent with the next token.
			lost(error)
			throw link.error('failed', 'Discord no longer accepts the bot token')
		}
	}
}

/** Downloads an attachment. Its address must be public, unless it is on the server of `api_root`. */
async function download(
	{ api_root }: DiscordConfig,
	url: string,
	{ signal, max_bytes }: LoadOptions,
): Promise<Uint8Array> {
	const isOwn = URL.parse(url)?.origin === URL.parse(api_root)?.origin
	const policy = { protocols: ['https:', ...(isOwn ? (['http:'] as const) : [])], private_first: isOwn } as const
	const response = await guardedFetch(url, { signal }, { policy, max_bytes, timeout_ms: DOWNLOAD_MS })
	if (!response.ok) {
		await response.body?.cancel()
		throw new Error(`Discord answered with status ${response.status}`)
	}
	return new Uint8Array(await response.arrayBuffer())
}
