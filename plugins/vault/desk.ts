/** What the parts of the vault share. */
import type { Context } from '../../core/plugin.ts'
import type { Keyring } from './keyring.ts'
import { openTurns } from './turns.ts'
import type { InTurn } from './turns.ts'

export interface Desk {
	ctx: Pick<Context, 'store' | 'redactor' | 'log' | 'use' | 'defer'>
	/** Throws `vault_locked`, saying why, while there is none. */
	ring(): Keyring
	/** Changes of secrets and grants go one after another. */
	inTurn: InTurn
	/** What is done is done: a log that cannot be written must not make it look undone. */
	tell(event_type: string, payload: Record<string, unknown>, agent?: string): Promise<void>
}

export function openDesk(ctx: Context, ring: () => Keyring): Desk {
	return {
		ctx,
		ring,
		inTurn: openTurns(),
		tell: (event_type, payload, agent) =>
			ctx
				.emit({ event_type, payload }, agent)
				.catch((error: unknown) => ctx.log.error({ err: error }, `${event_type} was not recorded`)),
	}
}

/**
 * Makes a check, for who is about to add an entry, that there are fewer than `limit`. Counting takes a look at all of them,
 * so it is done again only once as many have been added as there was room for.
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
