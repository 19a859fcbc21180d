/** What the next start would change in data of an older version. Only reads. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { dataFile } from '../../../store/lmdb/tables.ts'
import { countIn, growthOf, migrationsFor } from '../../../upgrade/migrate.ts'
import { format } from '../../../store/format.ts'
import { error, note, ok } from '../contract.ts'
import type { Check } from '../contract.ts'

const MIB = 1024 ** 2
/** Lower bounds of the rates on common disks: of migrations, and of packing and verifying a backup. */
const RECORDS_PER_S = 5_000
const BACKUP_BYTES_PER_S = 20 * MIB

export const upgradeChecks: Check[] = [
	{
		id: 'upgrade.data',
		about: 'how the next start changes data of an older version',
		async run(context) {
			if (await context.gateway()) return ok('the data has the format of the running gateway')
			const verdict = await context.storeVerdict()
			if (!verdict) return ok('there is no data yet')
			const { damage, refused, mark } = verdict
			if (mark && mark.format > format)
				return error(
					refused ?? 'the data has a newer format',
					'install that version, or restore a backup from before the upgrade: svc restore FILE --force',
				)
			if (damage !== null || refused !== null) return [] // store.intact says what to do
			if (!mark || (mark.format === format && mark.from === undefined))
				return ok(`the data has the format of this version, ${format}`)

			const store = await context.store()
			const migrations = await migrationsFor(mark)
			const counts = await Promise.all(
				migrations.map(async (one) => ({ about: one.about, count: store ? await countIn(store, [one]) : 0 })),
			)
			const records = counts.reduce((sum, { count }) => sum + count, 0)
			const { path } = (await context.config()).store
			const { size } = await stat(join(path, dataFile))
			const seconds = Math.ceil(records / RECORDS_PER_S + size / BACKUP_BYTES_PER_S)
			const growth = growthOf(records)
			const what = counts.map(({ about, count }) => `${about} (${count})`).join(', ')
			const space = `up to ${mebi(growth)} MiB of disk, and ${mebi(2 * size)} MiB for a backup`
			if (mark.from !== undefined)
				return note(
					`an upgrade to format ${format} was interrupted; the next start continues it, and needs up to ${mebi(growth)} MiB of disk`,
					'start the gateway; an older version cannot read the data until the backup from before the upgrade is restored: svc backup list',
				)
			return note(
				`the next start upgrades the data from format ${mark.format} to ${format}: it looks at ${what}, takes at most about ${seconds} s, and needs ${space}`,
				'start the gateway; it first takes a backup, with which you can return to the older version',
			)
		},
	},
]

function mebi(bytes: number): number {
	return Math.ceil(bytes / MIB)
}
