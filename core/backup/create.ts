import { addAbortListener } from 'node:events'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Worker } from 'node:worker_threads'
import { Fault, fromWire, isFault, messageOf } from '../errors.ts'
import type { Snapshots } from '../store/ports.ts'
import { mustHaveSpace, syncFolder } from './files.ts'
import { readKeys } from './keys.ts'
import type { BackupInfo } from './list.ts'
import { infoOf } from './list.ts'
import { databaseName } from './manifest.ts'
import type { Trigger } from './manifest.ts'
import { fileOf, idOf, originOf, partialOf } from './names.ts'
import type { PackAnswer } from './pack-worker.ts'
import type { Packed, PackJob } from './pack.ts'
import { verifyPrefix } from './verify.ts'
import { isFullDisk } from '../util/full-disk.ts'
import { programOf } from '../util/own-code.ts'
import { version } from '../version.ts'

export interface BackupRequest {
	home: string
	/** Where backups are stored; absolute. Created if it does not exist (0700). */
	folder: string
	snapshots: Snapshots
	trigger: Trigger
	include_key: boolean
	/** Mebibytes that must stay free on the disk. */
	min_free_mib: number
	signal?: AbortSignal
}

/** A change of the vault's key is rare, and takes milliseconds. */
const attempts = 5
/** For the thread's JavaScript; the chunks of data are outside the heap. */
const heapMib = 256
/** Free space kept beyond what the store needs: a backup must never cause a write to be refused. */
const spareMib = 64
const abandonedMs = 24 * 3_600_000

/**
 * Takes a backup of a home while the gateway runs, one at a time for each home. The file gets its name only once it is
 * complete, durable and read back. A process that is killed leaves a hidden folder, which the next backup removes.
 * Throws `storage_full`, or `backup_failed` with what to check.
 */
export async function createBackup(request: BackupRequest): Promise<BackupInfo> {
	const { folder, home, signal } = request
	const begun = new Date()
	let partial: string | undefined
	const keepFree = (request.min_free_mib + spareMib) * 1024 ** 2
	try {
		const origin = originOf(home)
		partial = partialOf(folder, origin)
		await mkdir(folder, { recursive: true, mode: 0o700 })
		await removeLeftovers(folder, partial)
		await mustHaveSpace(folder, 2 * request.snapshots.size(), keepFree)
		const staging = join(partial, 'home')
		await snapshot(request, staging)
		const id = await freeId(folder, begun)
		const { trigger } = request
		const about = { id, created_at: begun.toISOString(), trigger, gateway_version: version, origin }
		const file = join(partial, 'archive')
		const packed = await packInThread({ home, staging, file, keepFree, about }, signal)
		const target = fileOf(folder, id)
		await rename(file, target)
		await syncFolder(folder)
		return infoOf(target, packed.bytes, packed.manifest)
	} catch (error) {
		throw asFault(error, folder)
	} finally {
		if (partial !== undefined) await rm(partial, { recursive: true, force: true }).catch(() => {})
	}
}

/**
 * Removes what killed processes left: the partial backup of this home, and old folders of verifications. The gateway of another
 * home that shares the folder may be working there.
 */
async function removeLeftovers(folder: string, partial: string): Promise<void> {
	await rm(partial, { recursive: true, force: true })
	for (const name of await readdir(folder)) {
		if (!name.startsWith(verifyPrefix)) continue
		const left = join(folder, name)
		const found = await stat(left).catch(() => undefined)
		if (found && found.mtimeMs < Date.now() - abandonedMs) await rm(left, { recursive: true, force: true })
	}
}

/** Copies the database and, if they are included, the keys of the same moment. */
async function snapshot({ home, snapshots, include_key, signal }: BackupRequest, staging: string): Promise<void> {
	const data = dirname(join(staging, databaseName))
	for (let attempt = 0; attempt < attempts; attempt++) {
		await rm(data, { recursive: true, force: true })
		await mkdir(data, { recursive: true, mode: 0o700 })
		const before = include_key ? await readKeys(home) : new Map<string, Buffer>()
		await snapshots.take(data, signal)
		const keys = include_key ? await readKeys(home) : before
		if (!isDeepStrictEqual(before, keys)) continue
		if (keys.size > 0) await mkdir(join(staging, 'keys'), { mode: 0o700 })
		for (const [path, bytes] of keys) await writeFile(join(staging, path), bytes, { mode: 0o600, flag: 'wx' })
		return
	}
	throw new Fault('backup_failed', 'the key of the vault changed during every attempt; create the backup again')
}

/** The start time; some milliseconds later if a backup has that name already, as in a folder that several homes share. */
async function freeId(folder: string, begun: Date): Promise<string> {
	for (let ms = begun.getTime(); ; ms++) {
		const id = idOf(new Date(ms))
		if (!(await stat(fileOf(folder, id)).catch(() => undefined))) return id
	}
}

async function packInThread(job: PackJob, signal?: AbortSignal): Promise<Packed> {
	signal?.throwIfAborted()
	const worker = new Worker(programOf(new URL('./pack-worker.ts', import.meta.url)), {
		workerData: job,
		resourceLimits: { maxOldGenerationSizeMb: heapMib },
	})
	const { promise, resolve, reject } = Promise.withResolvers<PackAnswer>()
	worker.once('message', resolve)
	worker.once('error', reject)
	worker.once('exit', () => reject(new Error('its thread ended before it was done')))
	using _ = signal && addAbortListener(signal, () => reject(signal.reason))
	try {
		const answer = await promise
		if ('packed' in answer) return answer.packed
		throw answer.system
			? Object.assign(new Error(answer.error.message), { code: answer.system })
			: fromWire(answer.error)
	} finally {
		await worker.terminate()
	}
}

function asFault(error: unknown, folder: string): Fault {
	const { code } = error as NodeJS.ErrnoException
	// LMDB reports it only in the message.
	if (isFullDisk(error) || /no space left|quota exceeded/i.test(messageOf(error)))
		return new Fault('storage_full', `the disk of ${folder} became full: make room there`, { cause: error })
	// `internal` is any other error of the thread; `backup_damaged` means that the new file could not be read back.
	if (isFault(error) && !isFault(error, 'internal', 'backup_damaged')) return error
	if (code === 'ABORT_ERR' || (error as Error).name === 'AbortError')
		return new Fault('backup_failed', 'the backup was cancelled, because the gateway stops or its settings changed', {
			cause: error,
		})
	return new Fault('backup_failed', `the backup could not be made in ${folder}: ${messageOf(error)}`, { cause: error })
}
