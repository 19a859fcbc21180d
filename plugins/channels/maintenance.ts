/** Finishes interrupted deletions, and removes bindings of deleted agents and expired codes. */
import { isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { ChannelSettings } from './contract.ts'
import type { ChannelParts, RunningChannels } from './channels.ts'

const CODES_EVERY_MS = 10 * 60_000

export function maintain(
	{ log, signal, on, every, serving }: Context<ChannelSettings>,
	channels: RunningChannels,
	{ directory, bindings, pairing }: ChannelParts,
): void {
	const forEachChannel = async (work: (channel_id: string) => Promise<void>): Promise<void> => {
		for (const { id } of await directory.list()) {
			if (signal.aborted) return
			await work(id).catch((error: unknown) => {
				if (!isFault(error, 'not_found')) throw error // the channel was deleted meanwhile
			})
		}
	}
	const orLog = (work: Promise<void>): void =>
		void work.catch((error: unknown) => {
			if (!signal.aborted)
				log.error({ err: error }, 'the maintenance of channels failed; it is repeated at the next start')
		})

	on('agent.deleted', () => orLog(forEachChannel(bindings.sweep)))
	every(CODES_EVERY_MS, () => forEachChannel(pairing.sweep))
	const begin = async (): Promise<void> => {
		await channels.finishDeletions()
		await forEachChannel(bindings.sweep)
		await forEachChannel(pairing.sweep)
	}
	void serving.then(() => orLog(begin()))
}
