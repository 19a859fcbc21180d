/** The LMDB environment: its options, its tables, and how keys lie in them. The check at start opens it with the same. */
import { open } from 'lmdb'
import type { Database, RootDatabase } from 'lmdb'

/** A table's keys are strings, sorted by their UTF-8 bytes; its values are bytes. */
export type Table = Database<Buffer, string>

/**
 * - `meta`: format, and how far revisions are given out
 * - `records`: the store, by joined key
 * - `log`: one record per append, by the cursor of its last entry
 * - `runs`, `agents`: run or agent, NUL, cursor: which records of the log are theirs; without values
 * - `jobs`: the queue, by place in it, NUL, id
 * - `tries`: by place in the queue: how often a job was handed out, and not before when it is next
 */
export const tableNames = ['meta', 'records', 'log', 'runs', 'agents', 'jobs', 'tries'] as const

export type Tables = Record<(typeof tableNames)[number], Table>

/** Tables whose values are sealed records; the others have none. */
export const sealedTables: readonly (keyof Tables)[] = ['meta', 'records', 'log', 'jobs', 'tries']

export interface Env {
	root: RootDatabase<Buffer, string>
	tables: Tables
	close(): Promise<void>
}

export const dataFile = 'data.mdb'

/** Throws whatever LMDB throws; a damaged file can end the process instead, so look at it with `checkFolder` first. */
export function openEnv(path: string, mode: 'write' | 'read'): Env {
	const root = open<Buffer, string>({
		path,
		// The path is a folder also where its name has a dot.
		noSubdir: false,
		maxDbs: tableNames.length,
		encoding: 'binary',
		readOnly: mode === 'read',
		// Commit, then settle: with it, lmdb-js makes a commit visible before it is on the disk and chooses after a crash
		// between two states by the machine's boot id. Without it the put's promise means durable, and with one commit in
		// flight it was also faster here: 0.30 ms against 0.42 ms for one write, at three quarters of the CPU time.
		overlappingSync: false,
		// Spare parts of a page go to the file: they must not hold what was in memory before, which may be a secret.
		noMemInit: false,
		// Only address space (on Windows the file itself, so not there). LMDB grows it as needed, but keeps each former
		// mapping; few installations ever get above this.
		...(process.platform !== 'win32' && { mapSize: 1024 ** 3 }),
		...permissions,
	})
	const options = { encoding: 'binary', keyEncoder } as const
	const tables = Object.fromEntries(
		tableNames.map((name) => [name, root.openDB<Buffer, string>(name, options)]),
	) as Tables
	return { root, tables, close: () => root.close() }
}

/** Not in lmdb's types. The umask can only take away from it. */
const permissions = { permissionsMode: 0o600 }

const keyEncoder = {
	writeKey(key: string, target: Buffer, start: number): number {
		return start + target.write(key, start, 'utf8')
	},
	readKey(source: Buffer, start: number, end: number): string {
		return source.toString('utf8', start, end)
	},
}

const cursorDigits = 11

/** A whole number below 2^53 as a key that sorts as the number does. */
export function numberKey(value: number): string {
	return value.toString(36).padStart(cursorDigits, '0')
}

export function keyNumber(key: string): number {
	return Number.parseInt(key, 36)
}
