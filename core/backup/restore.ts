import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { Fault, isFault, messageOf } from '../errors.ts'
import { lockHome } from '../process/lock.ts'
import { isFullDisk } from '../util/full-disk.ts'
import { giveToOwner, mustHaveSpace } from './files.ts'
import { databaseName } from './manifest.ts'
import type { Manifest } from './manifest.ts'
import { idOf } from './names.ts'
import { finishPlacement, isHalfPlaced, place } from './place.ts'
import type { Move } from './place.ts'
import { checkDatabase, readBackup, readHead, sizeOf } from './verify.ts'

export interface RestoreRequest {
	file: string
	/** Absolute; created if it does not exist. */
	home: string
	/** Replaces a home that is not empty; its former contents are kept beside it. */
	force: boolean
	/** The folder in which a gateway with this home expects its database; absolute. Throws if its settings cannot be read. */
	storeOf(home: string): string
	/** Reports progress with a phrase such as `reading the backup`. */
	step?(what: string): void
	signal?: AbortSignal
}

export interface Restored {
	home: string
	/** Where the home's former contents are now; null if it was empty. */
	aside: string | null
	manifest: Manifest
	/** What the operator must know or do, one sentence each. */
	notes: string[]
}

/** Replaced if the backup contains them. run/ and the backups stay. */
const replaced = ['config', 'data', 'plugins', 'skills', 'keys']
const dataFolder = dirname(databaseName)

/**
 * Restores a home. The whole backup is first read and checked, in a folder beside the home. Only then is the home changed, by
 * renames that resume after a kill. Throws `backup_damaged`, `home_in_use`, `conflict` (the home is not empty, and `force` is not
 * set), `storage_full`; then the home is unchanged.
 */
export async function restoreBackup(request: RestoreRequest): Promise<Restored> {
	const { file, force, signal, step } = request
	await readHead(file) // fails early for a file that is not a backup
	const made = await makeFolder(request.home)
	const home = realpathSync(request.home)
	try {
		await mkdir(join(home, 'run'), { recursive: true, mode: 0o700 })
		await using _lock = await lockHome(home)
		await finishPlacement(home)
		if (!force && (await hasFiles(home))) {
			throw new Fault(
				'conflict',
				`the home ${home} is not empty; with --force its content is moved aside, or choose another folder with --home`,
			)
		}
		const beside = besideOf(home)
		const staging = beside('.restoring')
		await rm(staging, { recursive: true, force: true })
		await mkdir(staging, { mode: 0o700 })
		try {
			step?.('reading the backup')
			const { manifest } = await readBackup(file, {
				into: staging,
				admit: ({ members }) => mustHaveSpace(staging, sizeOf(members), 0),
				...(signal && { signal }),
			})
			step?.('checking the database')
			checkDatabase(join(staging, databaseName))
			signal?.throwIfAborted()
			const notes: string[] = []
			const store = await storeIn(staging, request.storeOf, notes)
			const aside = beside(`.before-restore-${idOf(new Date())}`)
			const names = replacedEntries(store, manifest.includes_key)
			const moves = { aside: movesOf(names, home, aside), into: movesOf(names, staging, home) }
			await giveToOwner(home, staging)
			step?.('moving it into place')
			await place(home, { ...moves, staging })
			const isKept = existsSync(aside)
			if (isKept) await giveToOwner(home, aside)
			await giveToOwner(home, join(home, 'run'))
			return { home, aside: isKept ? aside : null, manifest, notes: [...notes, ...notesOn(home, manifest)] }
		} catch (error) {
			// If there is a journal, the restore resumes from it, and needs the staged files.
			if (!isHalfPlaced(home)) await rm(staging, { recursive: true, force: true })
			throw error
		}
	} catch (error) {
		if (made !== undefined) await removeEmpty(made)
		throw signal?.aborted ? error : asFault(error, home)
	}
}

function asFault(error: unknown, home: string): Fault {
	if (isFault(error)) return error
	if (isFullDisk(error))
		return new Fault('storage_full', `the disk of ${home} became full: make room there`, { cause: error })
	return new Fault('unavailable', `${home} could not be restored: ${messageOf(error)}`, { cause: error })
}

/** Returns the topmost folder that had to be created. */
async function makeFolder(home: string): Promise<string | undefined> {
	try {
		return await mkdir(home, { recursive: true, mode: 0o700 })
	} catch (error) {
		throw new Fault('unavailable', `the home ${home} cannot be created: ${messageOf(error)}`, { cause: error })
	}
}

/** Whether the home has any file. Empty folders do not count, since `svc init` creates them. */
async function hasFiles(home: string): Promise<boolean> {
	for (const name of replaced) {
		const entries = await readdir(join(home, name), { recursive: true, withFileTypes: true }).catch(() => [])
		if (entries.some((entry) => !entry.isDirectory())) return true
		if (existsSync(join(home, name)) && !statSync(join(home, name)).isDirectory()) return true
	}
	return false
}

/**
 * Paths beside the home, where renames stay on one disk. If nothing can be created there, or if the home is the root of a disk,
 * such as the volume of a container: paths inside the home.
 */
function besideOf(home: string): (suffix: string) => string {
	const parent = dirname(home)
	const probe = `${home}.restoring`
	const moved = join(home, '.restoring')
	try {
		if (parent === home) return (suffix) => join(home, suffix)
		// Only a trial shows it: one disk may be mounted in two places, between which nothing can be moved.
		rmSync(probe, { recursive: true, force: true })
		mkdirSync(probe, { mode: 0o700 })
		renameSync(probe, moved)
		return (suffix) => home + suffix
	} catch {
		rmSync(probe, { recursive: true, force: true })
		return (suffix) => join(home, suffix)
	} finally {
		rmSync(moved, { recursive: true, force: true })
	}
}

/** The database folder of the restored home, according to its settings. */
async function storeIn(staging: string, storeOf: (home: string) => string, notes: string[]): Promise<string> {
	let wanted: string
	try {
		wanted = storeOf(staging)
	} catch (error) {
		if (!isFault(error)) throw error
		notes.push(
			`the restored settings cannot be read here, so the database was put into ${dataFolder}/: ${error.message.replaceAll(staging + sep, '')}`,
		)
		return dataFolder
	}
	const folder = relative(staging, wanted)
	if (folder === dataFolder) return dataFolder
	if (folder === '' || folder.startsWith('..') || !wanted.startsWith(staging + sep)) {
		notes.push(
			`store.path of the restored settings is ${wanted}, outside of the home: the database was put into ${dataFolder}/ of the home; set store.path to "${dataFolder}", or move data.mdb there, before you start the gateway`,
		)
		return dataFolder
	}
	// Only the file is moved: the folder may be in data/ itself, or beside other files of the home.
	await mkdir(wanted, { recursive: true, mode: 0o700 })
	await rename(join(staging, databaseName), join(wanted, basename(databaseName)))
	await rmdir(join(staging, dataFolder)).catch(() => {})
	return folder
}

/** The entries of the home that a restore replaces. `store`: the folder of the database. */
function replacedEntries(store: string, hasKey: boolean): string[] {
	const top = store.split(sep)[0] ?? dataFolder
	const all = replaced.includes(top) ? replaced : [...replaced, store]
	// An existing key stays if the backup has none: it may be the right one.
	return all.filter((name) => name !== 'keys' || hasKey || top === 'keys')
}

function movesOf(names: readonly string[], source: string, target: string): Move[] {
	return names
		.filter((name) => existsSync(join(source, name)))
		.map((name) => ({ from: join(source, name), to: join(target, name) }))
}

function notesOn(home: string, { includes_key, left_out, members }: Manifest): string[] {
	const notes: string[] = []
	if (!includes_key) {
		notes.push(
			`the backup does not contain the vault's key: its secrets stay locked until the key is restored, as ${join(home, 'keys', 'vault.key')} or in SVC_VAULT_KEY`,
		)
	}
	if (!members.some(({ path }) => path.startsWith('config/')))
		notes.push('the backup does not contain gateway.yaml: the defaults apply')
	if (left_out.length > 0)
		notes.push(`not in the backup: ${left_out.slice(0, 20).join('; ')}${left_out.length > 20 ? '; …' : ''}`)
	return notes
}

/** Removes a folder that was created for a refused restore, unless it contains a file. */
async function removeEmpty(folder: string): Promise<void> {
	const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
	if (entries.every((entry) => entry.isDirectory())) await rm(folder, { recursive: true, force: true })
}
