/**
 * Replaces the contents of a home with a restored one, entry by entry, by renames. The planned steps are in a journal
 * on the disk before the first of them, so that the next process resumes after a kill: the home is the old one as
 * long as there is no journal, and the new one once the journal is gone. If a step fails, such as for a
 * disk that is mounted inside the home, the steps before it are undone.
 */
import { existsSync } from 'node:fs'
import { mkdir, open, readFile, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault, messageOf } from '../errors.ts'
import { lockHome } from '../process/lock.ts'
import { syncFolder } from './files.ts'

/** Absolute paths. */
export interface Placement {
	/** Moves an existing entry into a folder that nothing else uses. Done if `to` exists. */
	aside: Move[]
	/** Moves a new entry to its destination. Done if `from` is gone. */
	into: Move[]
	/** Removed at the end. */
	staging: string
}

export interface Move {
	from: string
	to: string
}

/** In the home while its entries are being replaced. */
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
		if (!isHalfPlaced(home)) throw error // everything is in place, and only the clean-up failed
		await undo(home, placement).catch(() => {}) // in that case the journal stays, and the message says what to do
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

/** Undoes the steps, and removes the journal last: after a kill in between, the next process moves forward again. */
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
	// The folder was created again by something else; its contents are not ours to remove.
	if (existsSync(to) && (await stat(to)).isDirectory() && (await readdir(to)).length === 0) await rmdir(to)
	if (existsSync(to)) throw new Error(`${from} cannot be moved to ${to}, which exists already`)
	await rename(from, to)
	await syncFolder(dirname(from))
	await syncFolder(dirname(to))
}
