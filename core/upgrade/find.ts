/** The migrations that came with the program, found by their file. */
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import type { FormatMark } from '../store/format.ts'
import { format } from '../store/format.ts'
import { importOwn } from '../util/own-code.ts'
import type { Migration } from './migration.ts'

const folder = new URL('../../plugins/', import.meta.url)

/** Those that data of this mark needs, in the order in which they run. */
export async function migrationsFor(mark: FormatMark): Promise<Migration[]> {
	const begun = mark.from ?? mark.format
	if (begun === format) return []
	const all = await allMigrations()
	return all.filter((one) => one.format > begun)
}

export async function allMigrations(): Promise<Migration[]> {
	const files = (await readdir(folder))
		.map((name) => new URL(`${name}/migrations.ts`, folder))
		.filter((file) => existsSync(file))
	const lists = await Promise.all(
		files.map(async (file) => ((await importOwn(file)) as { default: readonly Migration[] }).default),
	)
	return lists.flat().toSorted((a, b) => a.format - b.format || (a.name < b.name ? -1 : 1))
}
