import { GatewayDispatchEvents } from 'discord.js'
import { within } from '../../core/util/deadline.ts'
import { unlessAborted } from '../../core/util/unless-aborted.ts'
import { fileLoader } from './files.ts'
import { fetcherFor } from '../../core/fetch/guarded-fetch.ts'
import type { ChatRef, Connection, Link } from '../channels/adapter.ts'
import { openClient, UPLOAD_MS } from './client.ts'
import { TOKEN } from './config.ts'
import type { DiscordConfig } from './config.ts'
import { Closed, errorOf, isUnauthorized } from './errors.ts'
import { openIntake } from './intake.ts'
import { outgoingOf } from './outgoing.ts'
import type { Outgoing, Sender } from './outgoing.ts'
import { isSnowflake } from './snowflake.ts'

const LOGIN_MS = 45_000
/** Time for discord.js to restore a connection. After that the gateway reconnects with growing delays, which discord.js lacks. */
const RECOVER_MS = 30_000
const CLOSE_MS = 5_000
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
	const outgoing = outgoingOf(client)
	openIntake({ client, link, signal: closing.signal, saw: outgoing.saw, lost })

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
		...senderOf(outgoing, link, lost),
		load: fileLoader(link.config),
		close,
	}
}

/** `outgoing` with its errors converted to those of an adapter. */
function senderOf(outgoing: Outgoing, link: Link<DiscordConfig>, lost: (error: unknown) => void): Sender {
	const inChat = async <T>({ id }: ChatRef, work: () => Promise<T>): Promise<T> => {
		// A caller chose the id when it bound the chat, and the id becomes part of a request's path.
		if (!isSnowflake(id))
			throw link.error('refused', `${JSON.stringify(id)} is not the id of a Discord channel, which is a number`)
		try {
			return await work()
		} catch (error) {
			if (!isUnauthorized(error)) throw errorOf(error, link.error)
			// The message can still be sent with the next token.
			lost(error)
			throw link.error('failed', 'Discord no longer accepts the bot token')
		}
	}
	return {
		send: (message) => inChat(message.chat, () => outgoing.send(message)),
		edit: (id, message) => inChat(message.chat, () => outgoing.edit(id, message)),
		typing: (chat) => inChat(chat, () => outgoing.typing(chat)),
		find: (message, mark) => inChat(message.chat, () => outgoing.find(message, mark)),
		sendFile: (file, bytes) => inChat(file.chat, () => outgoing.sendFile(file, bytes)),
		findFile: (file, mark) => inChat(file.chat, () => outgoing.findFile(file, mark)),
		mark: outgoing.mark,
	}
}
