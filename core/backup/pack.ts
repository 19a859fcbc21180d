/**
 * Makes a backup file from a staging folder with the database and the keys: adds the home's other files, checks the
 * database, writes the archive, and reads it back. Runs in a separate thread; see create.ts.
 */
import { chmod, mkdir, open, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '../errors.ts'
import { checkFile } from './check-file.ts'
import { keyNumber } from '../store/lmdb/tables.ts'
import { collectFiles, openPlain } from './collect.ts'
import type { Collected } from './collect.ts'
import { writeEnvelope } from './envelope.ts'
import { digested, mustHaveSpace, piecesOf } from './files.ts'
import { holdsVaultKey } from './keys.ts'
import { databaseName, formatVersion, manifestName } from './manifest.ts'
import type { Manifest, Member, StoreFacts } from './manifest.ts'
import { padding, tarEnd, tarHeader } from './tar.ts'
import { readBackup } from './verify.ts'

export interface PackJob {
	home: string
	/** Contains `data/data.mdb`, and `keys/` if keys are included. */
	staging: string
	/** The archive; must not exist yet. */
	file: string
	/** Bytes of disk space that must stay free. */
	keepFree: number
	about: Pick<Manifest, 'id' | 'created_at' | 'trigger' | 'gateway_version' | 'origin'>
}

export interface Packed {
	bytes: number
	manifest: Manifest
}

/** When this settles, the file is complete, durable and read back. Throws `backup_failed` or `storage_full`. */
export async function pack({ home, staging, file: target, keepFree, about }: PackJob): Promise<Packed> {
	const store = factsOf(join(staging, databaseName))
	const { files, left_out } = await collectFiles(home, dirname(staging))
	const keys = await readdir(join(staging, 'keys')).catch(() => [])
	const database = await stat(join(staging, databaseName))
	const copied = files.reduce((sum, { bytes }) => sum + bytes, 0)
	await mustHaveSpace(dirname(target), 2 * copied + database.size, keepFree)

	const members: Member[] = []
	for (const file of files) {
		const member = await stage(file, staging)
		if (member) members.push(member)
		else left_out.push(`${file.path}: removed or replaced while the backup was created`)
	}
	for (const name of keys) members.push(await describe(staging, `keys/${name}`))
	// Last, so that the other members can be read without unpacking the database.
	members.push(await describe(staging, databaseName))
	const manifest: Manifest = {
		format: formatVersion,
		...about,
		host: { platform: process.platform, arch: process.arch, node: process.version },
		store,
		includes_key: holdsVaultKey(keys),
		left_out,
		members,
	}
	const bytes = await writeEnvelope(target, archive(staging, manifest))
	const { manifest: read } = await readBackup(target)
	if (JSON.stringify(read) !== JSON.stringify(manifest))
		throw new Fault('backup_failed', `the data read back from ${target} differs from what was written: check the disk`)
	return { bytes, manifest }
}

function factsOf(path: string): StoreFacts {
	const { damage, tables = {} } = checkFile(path)
	if (damage !== null)
		throw new Fault(
			'backup_failed',
			`the copy of the database is damaged: ${damage}; check the disk, and keep earlier backups`,
		)
	return {
		records: tables.records?.records ?? 0,
		log_records: tables.log?.records ?? 0,
		head: String(tables.log?.last ? keyNumber(tables.log.last) : 0),
		jobs: tables.jobs?.records ?? 0,
	}
}

/** Copies a file and computes its digest in the same pass, so that the two match even if the file is being written to. */
async function stage(
	{ path, source, executable }: Collected['files'][number],
	staging: string,
): Promise<Member | undefined> {
	const target = join(staging, path)
	await mkdir(dirname(target), { recursive: true, mode: 0o700 })
	await using opened = await openPlain(source)
	if (!opened) return undefined
	await using copy = await open(target, 'wx', 0o600)
	return { path, ...(await digested(piecesOf(opened), copy)), executable }
}

async function describe(staging: string, path: string): Promise<Member> {
	const file = join(staging, path)
	await chmod(file, 0o600)
	return { path, ...(await digested(pieces(file))), executable: false }
}

async function* archive(staging: string, manifest: Manifest): AsyncGenerator<Buffer> {
	const modified = manifest.created_at
	const text = Buffer.from(`${JSON.stringify(manifest, null, '\t')}\n`)
	yield tarHeader({ path: manifestName, bytes: text.length, executable: false, modified })
	yield text
	yield padding(text.length)
	for (const { path, bytes, executable } of manifest.members) {
		yield tarHeader({ path, bytes, executable, modified })
		yield* pieces(join(staging, path))
		yield padding(bytes)
	}
	yield tarEnd
}

async function* pieces(path: string): AsyncGenerator<Buffer> {
	await using file = await open(path, 'r')
	yield* piecesOf(file)
}
