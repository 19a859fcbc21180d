import { GatewayDispatchEvents } from 'discord.js'
import type { Client } from 'discord.js'
import type { IncomingMessage, Link } from '../channels/adapter.ts'
import { catchUp, newcomersOf } from './catch-up.ts'
import type { DiscordConfig } from './config.ts'
import { openInbox } from './inbox.ts'
import { incomingOf, isFromPerson } from './incoming.ts'
import type { DiscordMessage } from './incoming.ts'
import { placesOf } from './places.ts'
import type { MessagePlace } from './places.ts'

export interface Intake {
	client: Client
	link: Link<DiscordConfig>
	/** Aborts when the connection ends. */
	signal: AbortSignal
	/** Called with each message from the socket, including the bot's own. */
	saw(chat_id: string, id: string): void
	lost(error: unknown): void
}

/** Receives messages of people: from the socket, and after each new session those that were missed before. */
export function openIntake({ client, link, signal, saw, lost }: Intake): void {
	const ready = client as Client<true>
	const places = placesOf(ready)
	const take = async (message: DiscordMessage, guild_id?: string | null): Promise<void> => {
		if (!isFromPerson(message)) return
		const place = await places(message.channel_id, guild_id)
		signal.throwIfAborted()
		const incoming = read(message, place)
		if (incoming) await link.receive(incoming)
	}
	/** Skips an unreadable message: it would be unreadable again, and block all later ones. */
	const read = (message: DiscordMessage, place: MessagePlace): IncomingMessage | undefined => {
		try {
			return incomingOf(message, place, ready.user.id)
		} catch {
			const { id, channel_id } = message
			link.log.warn(`Discord: message ${id} of channel ${channel_id} was skipped, since it cannot be read`)
			return undefined
		}
	}
	// Messages from the socket have the id of their server, except direct messages.
	const inbox = openInbox((message) => take(message, message.guild_id ?? null), lost)
	signal.addEventListener('abort', inbox.close, { once: true })

	let session = new AbortController()
	const renew = async ({ signal: ended }: AbortController): Promise<void> => {
		const [known, cursor] = await Promise.all([link.chats(), link.cursor()])
		if (ended.aborted) return
		const chats = [...known, ...newcomersOf(client, known, cursor)]
		inbox.resume(chats.map(({ id }) => id))
		await catchUp({
			rest: client.rest,
			chats,
			take,
			done: inbox.release,
			warn: (chat_id, message) => link.log.warn({ chat_id }, `Discord: ${message}`),
			signal: AbortSignal.any([ended, signal]),
		})
	}
	client.ws.on(GatewayDispatchEvents.MessageCreate, (message: DiscordMessage) => {
		if (typeof message?.channel_id !== 'string') return
		saw(message.channel_id, message.id)
		if (isFromPerson(message)) inbox.push(message)
	})
	// A new session; a resumed one continues where it was.
	client.ws.on(GatewayDispatchEvents.Ready, () => {
		session.abort(new Error('another session has begun'))
		session = new AbortController()
		inbox.pause()
	})
	// Now the client knows its servers and channels.
	client.on('shardReady', () => {
		const current = session
		renew(current).catch((error: unknown) => {
			if (!current.signal.aborted) lost(error)
		})
	})
}
