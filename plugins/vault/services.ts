/** What the parts of the vault share. */
import type { Context } from '../../core/plugin.ts'
import type { Keyring } from './keyring.ts'
import type { Fault } from '../../core/errors.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { SerialQueue } from '../../core/util/serial-queue.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import { tryLater } from '../shared/try-later.ts'

const WAITING_LIMIT = 1_000

export interface VaultServices {
	ctx: Pick<Context, 'store' | 'redactor' | 'log' | 'use' | 'defer'>
	/** Throws `vault_locked` with the reason while the vault is locked. */
	ring(): Keyring
	/** A serial queue for changes of secrets and grants. */
	queue: SerialQueue
	/** Does not throw: the change is already done, and a failing log must not make it look undone. */
	emit(event_type: string, payload: Record<string, unknown>, agent?: string): Promise<void>
}

export function servicesOf(ctx: Context, ring: () => Keyring): VaultServices {
	return {
		ctx,
		ring,
		queue: openSerialQueue(WAITING_LIMIT, tooMany),
		emit: (event_type, payload, agent) => emitOrLog(ctx, { event_type, payload }, agent),
	}
}

/**
 * Creates a check, before an entry is added, that there are fewer than `limit`. Counting reads all entries,
 * so it is repeated only after as many additions as there was room for.
 */
export function boundOf(limit: number, entries: () => AsyncIterable<unknown>): () => Promise<boolean> {
	let room = 0
	return async () => {
		if (room <= 0) {
			room = limit
			for await (const _ of entries()) room--
		}
		return room-- > 0
	}
}

function tooMany(): Fault {
	return tryLater('queue_full', `${WAITING_LIMIT} changes of the vault wait already; try again later`, 1)
}
