import { Client, Collection, GatewayIntentBits, LimitedCollection } from 'discord.js'
import type { GuardedFetcher, GuardedInit } from '../../core/fetch/guarded-fetch.ts'
import { endingStrategy } from './strategy.ts'

export interface ClientOptions {
	api_root: string
	fetcher: GuardedFetcher
	/** The privileged intent. Without it, only mentions and direct messages have text. */
	message_content: boolean
	/** Called when the connection is dropped and reconnects automatically. */
	onLeaving(): void
}

/** Limit of one request, its answer included. discord.js repeats it once, which is safe for all of our requests. */
const REQUEST_MS = 15_000
/** The same for a request with a file. */
export const UPLOAD_MS = 50_000
const RETRIES = 1
/** Longest time that a GET waits for its rate limit. Other requests do not wait, since their callers retry. */
const RATE_LIMIT_WAIT_MS = 60_000
/** How long to wait for servers that are unavailable. */
const GUILDS_MS = 5_000

/**
 * The events that discord.js handles: about servers, their roles, channels and threads. From others, such as messages, it would build
 * unused objects, and it throws if one has an unexpected form.
 */
const HANDLED_EVENTS =
	/^(?:READY|RESUMED|GUILD_(?:CREATE|UPDATE|DELETE|ROLE_[A-Z]+)|(?:CHANNEL|THREAD)_(?:CREATE|UPDATE|DELETE|LIST_SYNC))$/

/** What discord.js requires, and threads. */
const CACHES = new Set([
	'GuildManager',
	'ChannelManager',
	'GuildChannelManager',
	'ThreadManager',
	'RoleManager',
	'PermissionOverwriteManager',
])

/**
 * A client of discord.js without caches of users, members and messages, which are not needed and would keep growing. `end` closes it
 * with its timers and sockets, within a few seconds, even if Discord does not respond.
 */
export function openClient({ api_root, fetcher, message_content, onLeaving }: ClientOptions): {
	client: Client
	end(): Promise<void>
} {
	const strategy = endingStrategy(onLeaving)
	const { Guilds, GuildMessages, DirectMessages, MessageContent } = GatewayIntentBits
	const client = new Client({
		intents: [Guilds, GuildMessages, DirectMessages, ...(message_content ? [MessageContent] : [])],
		waitGuildTimeout: GUILDS_MS,
		makeCache: ({ name }) => (CACHES.has(name) ? new Collection() : new LimitedCollection({ maxSize: 0 })),
		rest: {
			api: api_root.replace(/\/+$/, ''),
			timeout: UPLOAD_MS,
			retries: RETRIES,
			rejectOnRateLimit: ({ method, timeToReset }) => method !== 'GET' || timeToReset > RATE_LIMIT_WAIT_MS,
			makeRequest: async (url, { method, headers, body, signal }) => {
				const isUpload = body instanceof FormData
				// The fetcher needs bytes.
				const form = isUpload ? new Response(body) : undefined
				const init = {
					method,
					headers: {
						...(headers as Record<string, string>),
						...(form && { 'content-type': form.headers.get('content-type') }),
					},
					body: form ? await form.bytes() : body,
					signal: isUpload ? signal : AbortSignal.any([AbortSignal.timeout(REQUEST_MS), ...(signal ? [signal] : [])]),
				} as GuardedInit
				const response = await fetcher(url, init)
				// discord.js does not read every response, and an unread response occupies its connection.
				const bytes = await response.arrayBuffer()
				return new Response(bytes.byteLength > 0 ? bytes : null, response)
			},
		},
		ws: { buildStrategy: strategy.build },
	})
	handleOnly(client, HANDLED_EVENTS)
	const end = async (): Promise<void> => {
		strategy.end()
		await client.destroy()
	}
	return { client, end }
}

/** Packets of other types are passed only to listeners of `client.ws.on`. */
function handleOnly(client: Client, types: RegExp): void {
	const ws = client.ws as unknown as { handlePacket(packet?: { t?: unknown }, shard?: unknown): boolean }
	const handlePacket = ws.handlePacket.bind(ws)
	ws.handlePacket = (packet, shard) => {
		if (packet && !types.test(String(packet.t))) return false
		try {
			return handlePacket(packet, shard)
		} catch (error) {
			client.emit('error', new Error(`a packet ${packet?.t} could not be handled`, { cause: error }))
			return false
		}
	}
}
