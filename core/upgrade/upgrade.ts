/** Brings data of an older version to the format of this one, before anything else reads it: backup first, then migrations. */
import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Fault, isFault, messageOf } from '../errors.ts'
import type { BackupRequest } from '../backup/create.ts'
import type { Logger } from '../log/log.ts'
import { format } from '../store/format.ts'
import type { DataFormat, Engine } from '../store/ports.ts'
import { countIn, growthOf, migrate, migrationsFor } from './migrate.ts'
import type { Migration } from './migration.ts'
import { openProgress } from './progress.ts'
import type { UpgradeProgress } from './progress.ts'

export interface UpgradeOptions {
	engine: Pick<Engine, 'store' | 'snapshots' | 'space'>
	data: DataFormat
	log: Logger
	/** The folder of the data file. */
	folder: string
	/** Mebibytes that must stay free on the disk. */
	min_free_mib: number
	/** Null: no backup is taken. */
	backup: Omit<BackupRequest, 'snapshots' | 'trigger'> | null
	/** Called with the progress after each batch, and once all is done. */
	onProgress?(progress: UpgradeProgress): void
}

export interface Upgrade {
	progress(): UpgradeProgress
	/** Throws a Fault that states what to change. Before the first write the data is unchanged; later, the next start continues. */
	run(): Promise<void>
}

const LOG_EVERY_MS = 5_000
const MIB = 1024 ** 2

/** Null if the data has the format of this program. */
export function upgradeOf(options: UpgradeOptions): Upgrade | null {
	const { engine, data, folder, log, min_free_mib, backup, onProgress } = options
	const { store, snapshots } = engine
	const keepFree = min_free_mib * MIB
	const mark = data.mark()
	if (mark.format === format && mark.from === undefined) return null
	const progress = openProgress()
	const isResumed = mark.from !== undefined

	const run = async (): Promise<void> => {
		const names = { from: mark.from ?? mark.format, to: format }
		log.info(
			names,
			isResumed ? 'the upgrade of the home continues' : 'the home is upgraded to the format of this version',
		)
		const migrations = await migrationsFor(mark)
		if (!isResumed) {
			const isBackupBeside = backup !== null && (await diskOf(backup.folder)) === (await diskOf(folder))
			await mustHaveSpace(engine, migrations, isBackupBeside, keepFree)
		}
		if (backup && !isResumed) {
			const file = await backUp({ ...backup, snapshots })
			log.info(
				{ file },
				'a backup was taken before the upgrade; to return to the older version, restore it: svc restore',
			)
		}
		let loggedAt = performance.now()
		await migrate({
			store,
			format: data,
			migrations,
			report(done, all, { about }) {
				progress.reached(done, all, about)
				onProgress?.(progress.now())
				if (performance.now() - loggedAt < LOG_EVERY_MS) return
				loggedAt = performance.now()
				log.info({ done, all }, `upgrade: ${progress.now().text}`)
			},
		})
		log.info(names, 'the upgrade is complete')
	}
	return { progress: () => progress.now(), run }
}

/** A disk that fills up during the upgrade would lose no data, but keep the gateway from starting. */
async function mustHaveSpace(
	{ store, space }: UpgradeOptions['engine'],
	migrations: readonly Migration[],
	isBackupBeside: boolean,
	keepFree: number,
): Promise<void> {
	const disk = space?.()
	if (!disk) return
	const growth = growthOf(await countIn(store, migrations))
	// A backup is at most as large as the data file. Its temporary space is free again before the first migration.
	const bytes = growth + (isBackupBeside ? disk.bytes : 0)
	if (disk.free_bytes - bytes >= keepFree) return
	const [needed, free, kept] = [bytes, disk.free_bytes, keepFree].map((bytes) => Math.ceil(bytes / MIB))
	throw new Fault(
		'storage_full',
		`the upgrade of the home needs up to ${needed} MiB of disk${isBackupBeside ? ', its backup included' : ''}; ${free} MiB are free, and ${kept} MiB must stay free (store.min_free_mib). Nothing has changed: free some space, and start again`,
	)
}

/** Of a folder, which may not exist yet. */
async function diskOf(folder: string): Promise<number> {
	const found = await stat(folder).catch(() => undefined)
	return found?.dev ?? diskOf(dirname(folder))
}

/** Returns the name of its file. */
async function backUp(request: Omit<BackupRequest, 'trigger'>): Promise<string> {
	const { createBackup } = await import('../backup/create.ts')
	try {
		// As on request: retention never removes it, and version 0.1.0 can restore it.
		return basename((await createBackup({ ...request, trigger: 'request' })).file)
	} catch (error) {
		const message = `the backup before the upgrade failed: ${messageOf(error)}. Nothing has changed. Fix the cause, or start with --no-backup if you have a backup elsewhere`
		throw isFault(error) ? new Fault(error.code, message, { cause: error }) : error
	}
}
