/** Finds channels by the names that people use. */
import { path } from '../../../core/cli/contract.ts'
import type { Api } from '../../../core/cli/contract.ts'
import { pick } from '../../../core/cli/pick.ts'
import type { Channel, ChannelDetails } from '../contract.ts'

/** Names of the platforms, by the type of the channel. */
const platforms: Record<string, string> = { chat_a: 'telegram', chat_b: 'discord' }

export function platformOf(type: string): string {
	return platforms[type] ?? type
}

/** Oldest first, each with its current state. */
export async function allChannels(api: Api): Promise<ChannelDetails[]> {
	const { channels } = await api.request<{ channels: Channel[] }>('GET', '/v1/channels')
	return Promise.all(channels.map(({ id }) => readChannel(api, id)))
}

export function readChannel(api: Api, id: string): Promise<ChannelDetails> {
	return api.request<ChannelDetails>('GET', path`/v1/channels/${id}`)
}

/** Finds a channel by its id, the name of its token, the name of its bot, or by a platform with only one channel. */
export async function findChannel(api: Api, wanted: string): Promise<ChannelDetails> {
	const names = (one: ChannelDetails) => [one.bot_token_ref, one.bot, platformOf(one.type), one.type]
	return pick(await allChannels(api), wanted, { kind: 'channel', id: (one) => one.id, names })
}
