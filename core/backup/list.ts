/** The backups in a folder, as their files describe them. */
import { readdir, rm, stat } from 'node:fs/promises'
import { Fault, messageOf } from '../errors.ts'
import { syncFolder } from './files.ts'
import type { ManifestHead, StoreFacts } from './manifest.ts'
import { fileOf, idOfFile, idPattern } from './names.ts'
import { readHead } from './verify.ts'

export interface BackupInfo
	extends
		Pick<ManifestHead, 'id' | 'created_at' | 'trigger' | 'gateway_version' | 'includes_key' | 'left_out' | 'origin'>,
		Pick<StoreFacts, 'records' | 'log_records' | 'head'> {
	file: string
	/** The size of the file. */
	bytes: number
}

export interface BackupListing {
	/** Oldest first. */
	backups: BackupInfo[]
	/** Files that are named like a backup but cannot be read as one. */
	unreadable: { id: string; file: string; message: string }[]
}

/** Only the newest are read. */
const maxListed = 1000
const concurrency = 4

/** Reads only their manifests: `verifyBackup` checks whether one is intact. A missing folder counts as empty. */
export async function listBackups(folder: string): Promise<BackupListing> {
	const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
		if (error.code === 'ENOENT') return []
		throw new Fault('unavailable', `the folder of backups, ${folder}, cannot be read: ${messageOf(error)}`)
	})
	const ids = names
		.flatMap((name) => idOfFile(name) ?? [])
		.toSorted()
		.slice(-maxListed)
	const listed: BackupListing = { backups: [], unreadable: [] }
	for (let at = 0; at < ids.length; at += concurrency) {
		const reads = ids.slice(at, at + concurrency).map((id) => readInfo(id, fileOf(folder, id)))
		for (const found of await Promise.all(reads)) {
			if (found && 'message' in found) listed.unreadable.push(found)
			else if (found) listed.backups.push(found)
		}
	}
	return listed
}

/** Throws `not_found`. */
export async function removeBackup(folder: string, id: string): Promise<void> {
	const unknown = new Fault('not_found', `there is no backup "${id}"; list the backups to see their ids`)
	if (!idPattern.test(id)) throw unknown
	try {
		await rm(fileOf(folder, id))
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw unknown
		throw new Fault('unavailable', `the backup ${id} cannot be removed: ${messageOf(error)}`, { cause: error })
	}
	await syncFolder(folder)
}

/** What clients see of a backup. `bytes`: the size of its file. */
export function infoOf(file: string, bytes: number, manifest: ManifestHead): BackupInfo {
	const { id, created_at, trigger, gateway_version, store, includes_key, left_out, origin } = manifest
	const { records, log_records, head } = store
	const contents = { records, log_records, head, includes_key, left_out, origin }
	return { id, file, bytes, created_at, trigger, gateway_version, ...contents }
}

async function readInfo(
	id: string,
	file: string,
): Promise<BackupInfo | BackupListing['unreadable'][number] | undefined> {
	try {
		const { size } = await stat(file)
		const info = infoOf(file, size, await readHead(file))
		// A renamed file is listed under its file name, since it is removed by that name.
		return { ...info, id }
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as Fault).code === 'not_found') return undefined
		return { id, file, message: messageOf(error) }
	}
}
