/** The migrations of the built-in plugins, found by the name of their file. */
import type { FormatMark } from '../store/format.ts'
import { format } from '../store/format.ts'
import { ownParts } from '../util/own-files.ts'
import type { Migration } from './migration.ts'

/** The migrations that data with this mark needs, in the order in which they run. */
export async function migrationsFor(mark: FormatMark): Promise<Migration[]> {
	const from = mark.from ?? mark.format
	if (from === format) return []
	const all = await allMigrations()
	return all.filter((migration) => migration.format > from)
}

/** In the order in which they run: by format, then by name. */
export async function allMigrations(): Promise<Migration[]> {
	const lists = [...(await ownParts<readonly Migration[]>('migrations.ts')).values()]
	return lists.flat().toSorted((a, b) => a.format - b.format || (a.name < b.name ? -1 : 1))
}
