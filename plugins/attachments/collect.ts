/** Deletes what interrupted uploads and deletions left, and attachments that no run came to use. */
import { collectBlobs } from './blob-uses.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'

const HOUR_MS = 3_600_000

async function collect(
	{ store, signal, use }: Pick<Context, 'store' | 'signal' | 'use'>,
	at = Date.now(),
): Promise<void> {
	const before = new Date(at - HOUR_MS).toISOString()
	for await (const { uid } of use('agents').list()) {
		if (signal.aborted) return
		await collectBlobs(store, uid, before)
	}
}

export function collectHourly(ctx: Pick<Context, 'store' | 'signal' | 'use' | 'every' | 'after'>): void {
	ctx.after(1, () => collect(ctx))
	ctx.every(HOUR_MS, () => collect(ctx))
}
