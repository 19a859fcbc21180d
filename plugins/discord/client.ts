import { Client, GatewayIntentBits, Options } from 'discord.js'
import type { GuardedFetcher, GuardedInit } from '../../core/fetch/guarded-fetch.ts'
import { endingStrategy } from './strategy.ts'

export interface ClientOptions {
	api_root: string
	fetcher: GuardedFetcher
	/** The privileged intent: without it, text comes only with mentions and direct messages. */
	message_content: boolean
	/** The connection is dropped, and made again automatically. */
	onLeaving(): void
}

/** Limit of one request, its answer included. discord.js repeats it once, which is safe for all of our requests. */
const REQUEST_MS = 15_000
/** The same for a request with a file. */
export const UPLOAD_MS = 50_000
const RETRIES = 1
/** Longest time that a reading request waits for its rate limit; a writing one does not wait, since its caller schedules it. */
const TURN_MS = 60_000
/** Wait for servers in an outage, after the others have loaded. */
const GUILDS_MS = 5_000

/**
 * The events from which discord.js learns servers, their roles, channels and threads. From all others, messages above all, it
 * would build objects that nobody uses, and it throws if one is not as it expects.
 */
const KEPT =
	/^(?:READY|RESUMED|GUILD_(?:CREATE|UPDATE|DELETE|ROLE_[A-Z]+)|(?:CHANNEL|THREAD)_(?:CREATE|UPDATE|DELETE|LIST_SYNC))$/

/**
 * discord.js's client without caches of users, members and messages, which are not needed and would grow for days. `end` ends it
 * with its timers and sockets, within some seconds, even if the other side does not respond.
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
		makeCache: Options.cacheWithLimits({
			ApplicationCommandManager: 0,
			ApplicationEmojiManager: 0,
			AutoModerationRuleManager: 0,
			DMMessageManager: 0,
			EntitlementManager: 0,
			GuildBanManager: 0,
			GuildEmojiManager: 0,
			GuildInviteManager: 0,
			GuildMemberManager: 0,
			GuildMessageManager: 0,
			GuildScheduledEventManager: 0,
			GuildStickerManager: 0,
			MessageManager: 0,
			PresenceManager: 0,
			ReactionManager: 0,
			ReactionUserManager: 0,
			StageInstanceManager: 0,
			ThreadMemberManager: 0,
			UserManager: 0,
			VoiceStateManager: 0,
		}),
		rest: {
			api: api_root.replace(/\/+$/, ''),
			timeout: UPLOAD_MS,
			retries: RETRIES,
			rejectOnRateLimit: ({ method, timeToReset }) => method !== 'GET' || timeToReset > TURN_MS,
			makeRequest: async (url, { method, headers, body, signal }) => {
				const isUpload = body instanceof FormData
				// The fetcher takes bytes.
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
				// discord.js does not read every answer, and an unread answer keeps its connection.
				const bytes = await response.arrayBuffer()
				return new Response(bytes.byteLength > 0 ? bytes : null, response)
			},
		},
		ws: { buildStrategy: strategy.build },
	})
	keepOnly(client, KEPT)
	const end = async (): Promise<void> => {
		strategy.end()
		await client.destroy()
	}
	return { client, end }
}

/** Packets of other types reach only listeners of `client.ws.on`. */
function keepOnly(client: Client, types: RegExp): void {
	const ws = client.ws as unknown as { handlePacket(packet?: { t?: unknown }, shard?: unknown): boolean }
	const handlePacket = ws.handlePacket.bind(ws)
	ws.handlePacket = (packet, shard) => {
		if (packet && !types.test(String(packet.t))) return false
		try {
			return handlePacket(packet, shard)
		} catch (error) {
			client.emit('error', new Error(`a packet ${packet?.t} was not understood`, { cause: error }))
			return false
		}
	}
}
