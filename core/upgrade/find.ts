/** The migrations that came with the program, found by their file. */
import type { FormatMark } from '../store/format.ts'
import { format } from '../store/format.ts'
import { ownParts } from '../util/own-files.ts'
import type { Migration } from './migration.ts'

/** Those that data of this mark needs, in the order in which they run. */
export async function migrationsFor(mark: FormatMark): Promise<Migration[]> {
	const begun = mark.from ?? mark.format
	if (begun === format) return []
	const all = await allMigrations()
	return all.filter((one) => one.format > begun)
}

export async function allMigrations(): Promise<Migration[]> {
	const lists = [...(await ownParts<readonly Migration[]>('migrations.ts')).values()]
	return lists.flat().toSorted((a, b) => a.format - b.format || (a.name < b.name ? -1 : 1))
}
