/** The upgrade of a home of 0.1.0 with many memories, without its backup, compared with a durable copy of the data file. */
import { copyFileSync, cpSync, fsyncSync, openSync, closeSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openLmdb } from '../../core/store/lmdb/open.ts'
import { allMigrations, migrate } from '../../core/upgrade/migrate.ts'
import { fillHome } from '../homes/fill.ts'
import { openHome } from '../homes/home.ts'
import type { Effort } from './effort.ts'
import { compare, inTurns } from './rounds.ts'
import type { Figure } from './table.ts'

/** Events for each memory: they are copied, and need no conversion. */
const EVENTS = 5

export async function upgrade({ rounds, memories: [memories = 0] }: Effort): Promise<Figure[]> {
	const { folder, home } = openHome('0.1.0')
	try {
		await fillHome(home, { memories, events: EVENTS * memories })
		const file = join(home, 'data/data.mdb')
		const migrations = await allMigrations()
		const pairs = await inTurns<{ ms: number }>(
			rounds,
			async () => {
				const path = join(folder, 'upgraded')
				cpSync(join(home, 'data'), path, { recursive: true })
				await using engine = await openLmdb({ path })
				if (!engine.format) throw new Error('the engine has no format')
				const began = performance.now()
				await migrate({ store: engine.store, format: engine.format, migrations, report: () => {} })
				const ms = performance.now() - began
				rmSync(path, { recursive: true })
				return { ms }
			},
			async () => {
				const began = performance.now()
				const copy = join(folder, 'copy')
				copyFileSync(file, copy)
				const open = openSync(copy, 'r+')
				fsyncSync(open)
				closeSync(open)
				return { ms: performance.now() - began }
			},
		)
		return [
			{
				metric: `upgrade with ${memories.toLocaleString('en-US')} memories`,
				unit: 'ms',
				...compare(pairs, ({ ms }) => ms),
			},
		]
	} finally {
		rmSync(folder, { recursive: true, force: true })
	}
}
