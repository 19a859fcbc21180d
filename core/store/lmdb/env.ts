/** The LMDB environment: its options, its tables, and the encoding of their keys. */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import type { RootDatabase } from 'lmdb'
import { lockFile, tableNames } from './tables.ts'
import type { Tables } from './tables.ts'

export interface Env {
	root: RootDatabase<Buffer, string>
	tables: Tables
}

/**
 * `readOnly`: writes nothing, even if another process has it open for writing; the tables must exist. Throws whatever LMDB
 * throws; a damaged file can end the process instead, so call `checkFolder` of core/backup first.
 */
export function openEnv(path: string, { readOnly = false } = {}): Env {
	mustOpenLock(path, readOnly)
	const root = open<Buffer, string>({
		path,
		readOnly,
		// The path is a folder even if its name has a dot.
		noSubdir: false,
		maxDbs: tableNames.length,
		encoding: 'binary',
		// If true, lmdb-js makes a commit visible before it is on the disk, and after a crash chooses between two states by
		// the machine's boot id. If false, the promise of a put settles once it is durable, and with one commit in flight
		// that was also faster here: 0.30 ms against 0.42 ms for one write, at three quarters of the CPU time.
		overlappingSync: false,
		// Unused parts of a page are written to the file, and must not contain old memory, which may hold a secret.
		noMemInit: false,
		// Only address space (on Windows the file itself, so not set there). LMDB grows it as needed, but keeps each former
		// mapping; few installations ever get above this.
		...(process.platform !== 'win32' && { mapSize: 1024 ** 3 }),
		...permissions,
	})
	const options = { encoding: 'binary', keyEncoder } as const
	const tables = Object.fromEntries(
		tableNames.map((name) => [name, root.openDB<Buffer, string>(name, options)]),
	) as Tables
	return { root, tables }
}

/** If LMDB cannot open this file, it crashes the process (SIGSEGV). */
function mustOpenLock(path: string, readOnly: boolean): void {
	try {
		closeSync(openSync(join(path, lockFile), 'a+', 0o600))
	} catch (error) {
		// On a read-only file system, LMDB reads without a lock.
		if (!readOnly || (error as NodeJS.ErrnoException).code !== 'EROFS') throw error
	}
}

/** Missing in lmdb's types. The umask can only remove permissions. */
const permissions = { permissionsMode: 0o600 }

const keyEncoder = {
	writeKey(key: string, target: Buffer, start: number): number {
		return start + target.write(key, start, 'utf8')
	},
	readKey(source: Buffer, start: number, end: number): string {
		return source.toString('utf8', start, end)
	},
}
