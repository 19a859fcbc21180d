/** Wraps lmdb to count the keys and values that the store reads. */
import { open as openReal } from 'lmdb'
import type { Database, RootDatabase } from 'lmdb'

let rows = 0

/** The number since the last call. */
export function rowsRead(): number {
	const read = rows
	rows = 0
	return read
}

export function open(...args: Parameters<typeof openReal>): RootDatabase {
	const root = openReal(...args) as RootDatabase
	const openDB = root.openDB.bind(root) as (...inner: unknown[]) => Database
	return Object.assign(root, { openDB: (...inner: unknown[]) => counted(openDB(...inner)) })
}

/** Wraps the two methods with which the store reads (core/store/lmdb/record.ts and tables.ts). */
function counted(table: Database): Database {
	const { getBinaryFast, getKeys } = table
	return Object.assign(table, {
		getBinaryFast(...args: Parameters<typeof getBinaryFast>) {
			rows++
			return getBinaryFast.apply(table, args)
		},
		getKeys(...args: Parameters<typeof getKeys>) {
			return getKeys.apply(table, args).map((key) => (rows++, key))
		},
	})
}
