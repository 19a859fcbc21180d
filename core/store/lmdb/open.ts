import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Fault, messageOf } from '../../errors.ts'
import type { Logger } from '../../log/log.ts'
import { openDispatcher } from '../dispatcher.ts'
import { format, formatSince, mustBeReadable } from '../format.ts'
import type { FormatMark } from '../format.ts'
import type { Engine } from '../ports.ts'
import { contentsOf } from './contents.ts'
import { openEnv } from './env.ts'
import type { Env } from './env.ts'
import { readMark, writeMark } from './format-mark.ts'
import { dataFile, lockFile } from './tables.ts'
import { openEventLog } from './log.ts'
import { queueBacking, recoverJobs } from './queue.ts'
import { openReserve } from './reserve.ts'
import { openSnapshots } from './snapshots.ts'
import { freeBytesOf, watchSpace } from './space.ts'
import { openStore } from './store.ts'
import { openWriter } from './writer.ts'
import type { Writer } from './writer.ts'

/** The free space required for new files; LMDB needs less. */
const newFilesBytes = 1024 * 1024

export interface LmdbOptions {
	/** The data folder; created if missing (0700, its files 0600). Only one process at a time may have it open. */
	path: string
	log?: Logger
	/** Writes are refused while less than this would be left free on the disk. Default 64 MiB. */
	minFreeBytes?: number
	/** For tests, and for folders with a quota: the number of free bytes. If absent, the file system reports it. */
	freeBytes?: () => number
	/** For tests: the file size in bytes from which a separate process makes the copy. */
	copyApartFrom?: number
}

/**
 * Opens the embedded engine. LMDB would end the process on a damaged data file, so call `checkFolder` of core/backup first.
 * Throws `unavailable`, which states what to do, if the folder cannot be used, and `store_damaged` for a damaged record.
 */
export async function openLmdb({ path, log, minFreeBytes, freeBytes, copyApartFrom }: LmdbOptions): Promise<Engine> {
	const env = openFolder(path)
	const space = watchSpace(path, minFreeBytes ?? 64 * 1024 * 1024, freeBytes)
	const reserve = openReserve(path, env.root, space)
	const writer = openWriter(env, space, reserve, log)
	const snapshots = openSnapshots(env, writer, { path, log, apartFrom: copyApartFrom })
	const close = async (): Promise<void> => {
		await writer.drain()
		reserve.close()
		await snapshots.idle()
		// After a failed commit lmdb-js would wait forever.
		if (!writer.failed()) await env.root.close()
	}
	try {
		let mark = await markOf(env.tables, writer, path)
		const dispatcher = openDispatcher(queueBacking(env.tables, writer), recoverJobs(env.tables), log)
		const store = openStore(env.tables, writer, log)
		return {
			store,
			log: openEventLog(env.tables, writer, store, log),
			queue: dispatcher.queue,
			snapshots,
			contents: contentsOf(env.tables, writer),
			trouble: () => writer.trouble(),
			space: () => spaceOf(path),
			format: {
				mark: () => mark,
				async change(next) {
					await writeMark(env.tables, writer, next)
					mark = next
				},
			},
			async [Symbol.asyncDispose]() {
				dispatcher.close()
				await close()
			},
		}
	} catch (error) {
		await close()
		throw error
	}
}

function spaceOf(path: string): { bytes: number; free_bytes: number } | null {
	try {
		return { bytes: statSync(join(path, dataFile)).size, free_bytes: freeBytesOf(path) }
	} catch {
		return null // `trouble` reports the cause
	}
}

function openFolder(path: string): Env {
	try {
		const made = mkdirSync(path, { recursive: true, mode: 0o700 })
		// The umask applies to the mode of mkdir.
		if (made !== undefined) chmodSync(path, 0o700)
		mustHaveSpace(path)
		return openEnv(path)
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException
		const hint = code === 'EACCES' ? '; give all of the home to the user that runs the gateway' : ''
		const message = `the data folder ${path} cannot be opened: ${messageOf(error)}${hint}`
		throw new Fault('unavailable', message, { cause: error })
	}
}

/** If the disk fills up while LMDB makes its files, it crashes the process, or leaves a data file that counts as damaged. */
function mustHaveSpace(path: string): void {
	const isMade = (name: string): boolean => (statSync(join(path, name), { throwIfNoEntry: false })?.size ?? 0) > 0
	if (isMade(dataFile) && isMade(lockFile)) return
	let free = Infinity // if the file system does not report it
	try {
		free = freeBytesOf(path)
	} catch {}
	if (free < newFilesBytes)
		throw new Error(
			`only ${Math.floor(free / 1024)} KiB are free on its disk, and new data files need 1 MiB; make room there`,
		)
}

/** Marks a new folder with the format of its records, and refuses one that this program cannot read. */
async function markOf(tables: Env['tables'], writer: Writer, path: string): Promise<FormatMark> {
	const found = readMark(tables)
	if (found) {
		mustBeReadable(found, path)
		return found
	}
	const mark = { format, since: formatSince }
	// On a full disk the folder still opens, for reading; the mark is written at the next start.
	if (writer.trouble() === null) await writeMark(tables, writer, mark)
	return mark
}
