/** The part of `svc status` about channels. */
import type { StatusPart } from '../../../core/cli/command.ts'
import { path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { inBatches } from '../../../core/cli/in-batches.ts'
import { permitted } from '../../../core/cli/or-null.ts'
import type { ChannelDetails } from '../contract.ts'
import { platformOf } from './find.ts'

type ListedChannel = Pick<ChannelDetails, 'id' | 'type' | 'connection' | 'last_error'>

interface Facts {
	channels: ListedChannel[] | null
}

const CHANNELS_LIMIT = 64

export default {
	async read(cli: Cli): Promise<Facts> {
		return { channels: await permitted(channelsOf(cli)) }
	},
	show({ channels }: Facts, style) {
		if (!channels || channels.length === 0) return []
		const rows = channels.map((one) => [platformOf(one.type), one.connection, one.last_error])
		return ['', style.table(['channel', 'connection', 'last error'], rows)]
	},
} satisfies StatusPart

async function channelsOf({ api }: Cli): Promise<ListedChannel[]> {
	const { channels } = await api.request<{ channels: { id: string }[] }>('GET', '/v1/channels')
	const details = async ({ id }: { id: string }): Promise<ListedChannel | null> =>
		await permitted(api.request<ListedChannel>('GET', path`/v1/channels/${id}`))
	const found = await inBatches(channels.slice(0, CHANNELS_LIMIT), details)
	return found.flatMap((one) =>
		one ? [{ id: one.id, type: one.type, connection: one.connection, last_error: one.last_error }] : [],
	)
}
