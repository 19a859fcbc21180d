/**
 * Replaces the contents of a home with restored ones, entry by entry, by renames. The planned steps are written to a journal
 * on the disk first, so that the next process resumes after a kill: before the journal exists, the home is the old one; once
 * it is removed, the home is the new one. If a step fails, for example because a disk is mounted inside the home, the steps
 * before it are undone.
 */
import { existsSync } from 'node:fs'
import { mkdir, open, readFile, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault, messageOf } from '../errors.ts'
import { lockHome } from '../process/lock.ts'
import { syncFolder } from './files.ts'

/** Absolute paths. */
export interface Placement {
	/** Moves existing entries into an unused folder. A move is done if `to` exists. */
	aside: Move[]
	/** Moves new entries to their destinations. A move is done if `from` does not exist. */
	into: Move[]
	/** Removed at the end. */
	staging: string
}

export interface Move {
	from: string
	to: string
}

/** Exists while the entries of the home are being replaced. */
export function journalOf(home: string): string {
	return join(home, 'restore.journal')
}

/** Whether a restore was interrupted after it had begun to change the home. */
export function isHalfPlaced(home: string): boolean {
	return existsSync(journalOf(home))
}

/** Takes the lock of the home and resumes an interrupted restore; does nothing if there is none. */
export async function finishRestore(home: string): Promise<void> {
	if (!isHalfPlaced(home)) return
	await using _lock = await lockHome(home)
	await finishPlacement(home)
}

/** The caller holds the lock of the home. */
export async function place(home: string, placement: Placement): Promise<void> {
	const journal = journalOf(home)
	// Written in the staging folder, which the next restore removes.
	const temporary = join(placement.staging, 'journal')
	{
		await using file = await open(temporary, 'w', 0o600)
		await file.writeFile(JSON.stringify(placement))
		await file.sync()
	}
	await rename(temporary, journal)
	await syncFolder(home)
	try {
		await finishPlacement(home)
	} catch (error) {
		if (!isHalfPlaced(home)) throw error // everything is in place; only the clean-up failed
		await undo(home, placement).catch(() => {}) // then the journal stays, and `error` states what to do
		if (isHalfPlaced(home)) throw error
		const { cause } = error as Error
		throw new Fault('unavailable', `${home} could not be replaced and is unchanged: ${whyNot(cause)}`, { cause })
	}
}

/** Performs the remaining steps of the journal; does nothing without a journal. The caller holds the lock of the home. */
export async function finishPlacement(home: string): Promise<void> {
	const journal = journalOf(home)
	if (!existsSync(journal)) return
	try {
		const { aside, into, staging } = JSON.parse(await readFile(journal, 'utf8')) as Placement
		for (const { from, to } of aside) if (!existsSync(to)) await move(from, to)
		for (const { from, to } of into) if (existsSync(from)) await move(from, to)
		await rm(journal)
		await syncFolder(home)
		await rm(staging, { recursive: true, force: true })
	} catch (error) {
		const message = `the restore of ${home} could not be completed (${messageOf(error)}); fix that and start the gateway, or svc restore, again: it resumes where it stopped`
		throw new Fault('unavailable', message, { cause: error })
	}
}

/** Undoes the steps and removes the journal last: after a kill in between, the next process completes the restore instead. */
async function undo(home: string, { aside, into }: Placement): Promise<void> {
	for (const { from, to } of into.toReversed()) if (!existsSync(from)) await move(to, from)
	for (const { from, to } of aside.toReversed()) if (existsSync(to)) await move(to, from)
	for (const folder of new Set(aside.map(({ to }) => dirname(to)))) await rmdir(folder).catch(() => {})
	await rm(journalOf(home))
	await syncFolder(home)
}

function whyNot(cause: unknown): string {
	const { code, path } = cause as NodeJS.ErrnoException & { path?: string }
	if (code === 'EBUSY' || code === 'EXDEV')
		return `${path} is on a separate disk, so it cannot be moved aside; unmount it, or restore into another folder with --home and copy from there`
	return messageOf(cause)
}

async function move(from: string, to: string): Promise<void> {
	await mkdir(dirname(to), { recursive: true, mode: 0o700 })
	// Another process may have created the folder again. If it has contents, they are not removed.
	if (existsSync(to) && (await stat(to)).isDirectory() && (await readdir(to)).length === 0) await rmdir(to)
	if (existsSync(to)) throw new Error(`${from} cannot be moved to ${to}, which exists already`)
	await rename(from, to)
	await syncFolder(dirname(from))
	await syncFolder(dirname(to))
}
