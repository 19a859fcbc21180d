/** Services that all parts of the vault use. */
import type { Context } from '../../core/plugin.ts'
import type { Keyring } from './keyring.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import { tryLater } from '../shared/try-later.ts'

const WAITING_LIMIT = 1_000

export type VaultServices = ReturnType<typeof servicesOf>

/** `ring`: throws `vault_locked` with the reason while the vault is locked. */
export function servicesOf(ctx: Context, ring: () => Keyring) {
	return {
		ctx,
		ring,
		/** For changes of secrets and grants. */
		queue: openSerialQueue(WAITING_LIMIT, () =>
			tryLater('queue_full', `${WAITING_LIMIT} changes of the vault are waiting; try again later`, 1),
		),
		/** Does not throw: the change is already stored, so a failure of the event log must not fail the request. */
		emit: (event_type: string, payload: Record<string, unknown>, agent?: string): Promise<void> =>
			emitOrLog(ctx, { event_type, payload }, agent),
	}
}

/**
 * Returns a check to call before an entry is added: false if there are `limit` entries. Counting reads all entries, so they are
 * counted again only when as many were added as there was room for.
 */
export function roomBelow(limit: number, entries: () => AsyncIterable<unknown>): () => Promise<boolean> {
	let room = 0
	return async () => {
		if (room <= 0) {
			room = limit
			for await (const _ of entries()) room--
		}
		return room-- > 0
	}
}
