/** Reads a whole backup, and refuses one that does not match its manifest exactly. */
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Fault, messageOf } from '../errors.ts'
import { checkFile } from './check-file.ts'
import { checkEnvelope, openEnvelope } from './envelope.ts'
import { digested, mustHaveSpace, syncFolder } from './files.ts'
import { damaged, databaseName, manifestName, maxManifestBytes, parseHead, parseManifest } from './manifest.ts'
import type { Manifest, ManifestHead, Member } from './manifest.ts'
import { readTar } from './tar.ts'
import type { TarEntry } from './tar.ts'

export interface ReadOptions {
	/** Writes the members into this existing, empty folder; durable when the promise settles. */
	into?: string
	/** Which members to write; all if absent. */
	only?: (member: Member) => boolean
	/** Called with the manifest before anything is written. */
	admit?: (manifest: Manifest) => Promise<void>
	signal?: AbortSignal
}

export interface ReadResult {
	manifest: Manifest
	/** The size of the file. */
	bytes: number
}

/** Prefix of the folders for the database of a backup that is being verified. */
export const verifyPrefix = '.verify-'

/**
 * Throws `backup_damaged` if a bit of the file has changed since it was written, or if it contains anything that its manifest does
 * not list. The sizes in the manifest are limits, and there are no links.
 */
export async function readBackup(file: string, { into, only, admit, signal }: ReadOptions = {}): Promise<ReadResult> {
	const bytes = await readable(file, checkEnvelope(file, signal))
	const entries = readTar(openEnvelope(file, signal))
	try {
		const manifest = parseManifest(await firstOf(entries))
		await admit?.(manifest)
		for (const member of manifest.members) {
			const { value: entry } = await entries.next()
			if (!entry || entry.path !== member.path || entry.bytes !== member.bytes)
				throw damaged(`"${member.path}" is missing, out of place, or has a different size than listed`)
			await readMember(entry, member, into !== undefined && (only?.(member) ?? true) ? into : undefined)
		}
		if (!(await entries.next()).done) throw damaged('it contains files that its manifest does not list')
		return { manifest, bytes }
	} finally {
		await entries.return(undefined)
	}
}

/** The manifest of a backup without the list of its members. Does not read the rest of the file. */
export async function readHead(file: string): Promise<ManifestHead> {
	const entries = readTar(openEnvelope(file))
	try {
		return parseHead(await readable(file, firstOf(entries)))
	} finally {
		await entries.return(undefined)
	}
}

/** Checks what a restore checks before it changes anything: reads the whole file, and checks the database in a temporary folder. */
export async function verifyBackup(file: string, signal?: AbortSignal): Promise<ReadResult> {
	const folder = await temporaryBeside(file)
	try {
		const isDatabase = ({ path }: Member): boolean => path === databaseName
		const result = await readBackup(file, {
			into: folder,
			only: isDatabase,
			admit: ({ members }) => mustHaveSpace(folder, sizeOf(members.filter(isDatabase)), 0),
			...(signal && { signal }),
		})
		checkDatabase(join(folder, databaseName))
		return result
	} finally {
		await rm(folder, { recursive: true, force: true })
	}
}

/** Throws `backup_damaged` if LMDB could not read the file, or if a record in it is damaged. */
export function checkDatabase(path: string): void {
	const { damage } = checkFile(path)
	if (damage !== null) throw damaged(`its database is damaged: ${damage}`)
}

/** The size of all members, in bytes. */
export function sizeOf(members: Member[]): number {
	return members.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** The bytes of the manifest. */
async function firstOf(entries: AsyncGenerator<TarEntry>): Promise<Buffer> {
	const { value: first } = await entries.next()
	if (first?.path !== manifestName || first.bytes > maxManifestBytes) throw damaged('it does not begin with a manifest')
	return Buffer.concat(await Array.fromAsync(first.body))
}

async function readMember({ body }: TarEntry, { path, sha256, executable }: Member, into?: string): Promise<void> {
	let found: string
	if (into === undefined) found = (await digested(body)).sha256
	else {
		const target = join(into, path)
		await using file = await create(target, executable ? 0o700 : 0o600).catch((error: NodeJS.ErrnoException) => {
			if (!collisions.includes(error.code ?? '')) throw error
			throw damaged(`"${path}" conflicts with its other files`)
		})
		found = (await digested(body, file)).sha256
		await file.sync()
		await syncFolder(dirname(target))
	}
	if (found !== sha256) throw damaged(`"${path}" is not what was stored`)
}

/** Refuses a name that exists already, including one that differs only in case on a disk that ignores case. */
async function create(target: string, mode: number): Promise<FileHandle> {
	await mkdir(dirname(target), { recursive: true, mode: 0o700 })
	return open(target, 'wx', mode)
}

const collisions = ['EEXIST', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG']

/** Converts errors of reading the file to Faults that name it. */
async function readable<T>(file: string, reading: Promise<T>): Promise<T> {
	try {
		return await reading
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException
		if (code === 'ENOENT') throw new Fault('not_found', `there is no file ${file}`, { cause: error })
		if (error instanceof Fault || code === 'ABORT_ERR') throw error
		throw new Fault('unavailable', `the backup ${file} cannot be read: ${messageOf(error)}`, { cause: error })
	}
}

/** The folder of the backup is more likely to have room for large files than the system's temporary folder. */
async function temporaryBeside(file: string): Promise<string> {
	try {
		return await mkdtemp(join(dirname(file), verifyPrefix))
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new Fault('not_found', `there is no file ${file}`)
		return mkdtemp(join(tmpdir(), 'svc-verify-'))
	}
}
