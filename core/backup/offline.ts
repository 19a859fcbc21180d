/** Backs up a home whose gateway is not running. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../errors.ts'
import { lockHome } from '../process/lock.ts'
import { openLmdb } from '../store/lmdb/open.ts'
import { dataFile, lockFile } from '../store/lmdb/tables.ts'
import { checkFolder } from './check-folder.ts'
import { createBackup } from './create.ts'
import type { BackupRequest } from './create.ts'
import type { BackupInfo } from './list.ts'
import { giveToOwner } from './files.ts'
import { finishPlacement, isHalfPlaced } from './place.ts'

export interface OfflineRequest extends Omit<BackupRequest, 'snapshots' | 'trigger'> {
	/** The folder of the database. */
	store: string
}

/** Throws `home_in_use` while a gateway runs there, `not_found` if the home has no data, and the errors of `createBackup`. */
export async function createOffline({ store, ...request }: OfflineRequest): Promise<BackupInfo> {
	const { home } = request
	if (!existsSync(store) && !isHalfPlaced(home))
		throw new Fault('not_found', `there is nothing to back up: ${store} does not exist`)
	mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 })
	await using _lock = await lockHome(home)
	await finishPlacement(home)
	const { folder } = request
	const isNewFolder = !existsSync(folder)
	try {
		checkFolder(store)
		await using engine = await openLmdb({ path: store })
		const made = await createBackup({ ...request, snapshots: engine.snapshots, trigger: 'request' })
		await giveToOwner(home, made.file)
		return made
	} finally {
		// Otherwise the gateway could not write these files later.
		const files = [dataFile, lockFile].map((name) => join(store, name))
		for (const path of [join(home, 'run'), ...files, ...(isNewFolder ? [folder] : [])]) await giveToOwner(home, path)
	}
}
