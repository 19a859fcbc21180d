import { Client, GatewayIntentBits, Options } from 'discord.js'
import type { GuardedFetcher, GuardedInit } from '../../core/fetch/guarded-fetch.ts'
import { endingStrategy } from './strategy.ts'

export interface ClientOptions {
	api_root: string
	fetcher: GuardedFetcher
	/** The privileged intent: without it, text comes only with mentions and direct messages. */
	message_content: boolean
	/** The connection is given up, and made again by itself. */
	onLeaving(): void
}

export interface EndingClient {
	client: Client
	/** Ends it with its timers and sockets; settles within some seconds, whatever the other side does. */
	end(): Promise<void>
}

/** Of one request, its answer included. discord.js repeats it once; each of ours may be. */
export const REQUEST_MS = 15_000
const RETRIES = 1
/** Longest wait of a request that reads for its turn; one that writes does not wait, the caller has a better idea. */
const TURN_MS = 60_000
/** For servers in an outage, after the others have come. */
const GUILDS_MS = 5_000

/**
 * What discord.js needs to know servers, their roles, channels and threads. Everything else, messages above all, it would
 * make objects of that nobody looks at, and it throws where one is not as it expects.
 */
const KEPT =
	/^(?:READY|RESUMED|GUILD_(?:CREATE|UPDATE|DELETE|ROLE_[A-Z]+)|(?:CHANNEL|THREAD)_(?:CREATE|UPDATE|DELETE|LIST_SYNC))$/

/** discord.js's client without what it would keep of users, members and messages: it serves for days, and we need none of it. */
export function openClient({ api_root, fetcher, message_content, onLeaving }: ClientOptions): EndingClient {
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
			timeout: REQUEST_MS,
			retries: RETRIES,
			rejectOnRateLimit: ({ method, timeToReset }) => method !== 'GET' || timeToReset > TURN_MS,
			makeRequest: async (url, { method, headers, body, signal }) => {
				const response = await fetcher(url, { method, headers, body, signal } as GuardedInit)
				// discord.js does not read every answer, and one that is not read keeps its connection.
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

/** Packets of other types are heard by `client.ws.on` only. */
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
