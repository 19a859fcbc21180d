import { BoundedMap } from '../../core/util/bounded-map.ts'
import { ChannelType, Routes } from 'discord.js'
import type { APIChannel, Client } from 'discord.js'
import type { ChatKind } from '../channels/adapter.ts'
import { isGone } from './errors.ts'

/** The place of a message: its kind of chat and the containers. */
export interface MessagePlace {
	kind: ChatKind
	/** The channel of a thread, then the server. */
	within: string[]
	/** The role that Discord created for the bot on that server. Mentioning it addresses the bot. */
	bot_role?: string
}

/** Returns the place of a channel. `guild_id`: null in direct messages, undefined if unknown. Throws what the request throws. */
export type Places = (channel_id: string, guild_id: string | null | undefined) => Promise<MessagePlace>

/** Limit of cached places: direct chats, and threads that discord.js has not loaded. */
const CACHE_LIMIT = 1_000

export function placesOf(client: Client<true>): Places {
	const cache = new BoundedMap<string, MessagePlace>(CACHE_LIMIT)
	const inGuild = (guild_id: string, parent?: string | null): MessagePlace => {
		const bot_role = client.guilds.cache.get(guild_id)?.roles.botRoleFor(client.user)?.id
		return {
			kind: 'group',
			within: parent === undefined || parent === null ? [guild_id] : [parent, guild_id],
			...(bot_role !== undefined && { bot_role }),
		}
	}
	const lookUp = async (id: string): Promise<MessagePlace> => {
		const channel = (await client.rest.get(Routes.channel(id))) as APIChannel
		if (channel.type === ChannelType.DM) return { kind: 'private', within: [] }
		const guild_id = 'guild_id' in channel ? channel.guild_id : undefined
		if (guild_id === undefined) return { kind: 'group', within: [] }
		return inGuild(guild_id, isThread(channel.type) && 'parent_id' in channel ? channel.parent_id : null)
	}
	return async (id, guild_id) => {
		if (guild_id === null) return { kind: 'private', within: [] }
		const channel = client.channels.cache.get(id)
		if (channel && 'guildId' in channel) return inGuild(channel.guildId, channel.isThread() ? channel.parentId : null)
		const known = cache.get(id)
		if (known) return known
		const place = await lookUp(id).catch((error: unknown) => {
			if (guild_id !== undefined && isGone(error)) return inGuild(guild_id)
			throw error
		})
		cache.set(id, place)
		return place
	}
}

function isThread(type: ChannelType): boolean {
	return [ChannelType.PublicThread, ChannelType.PrivateThread, ChannelType.AnnouncementThread].includes(type)
}
