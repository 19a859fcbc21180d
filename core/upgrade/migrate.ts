/**
 * Runs migrations in batches. Their progress is stored, so that the next start after a crash continues. Records that were
 * converted after the last save are converted again, which writes nothing.
 */
import { Fault, isFault, messageOf } from '../errors.ts'
import { format, formatSince } from '../store/format.ts'
import { joinKey } from '../store/keys.ts'
import type { FormatMark } from '../store/format.ts'
import type { DataFormat, Entry, Key, Store } from '../store/ports.ts'
import { ownParts } from '../util/own-files.ts'
import type { Migration, RecordRange, Reader } from './migration.ts'

const progressKey: Key = ['upgrade', 'progress']
const BATCH = 40
/** The most that a converted record adds to the data file, including freed pages that cannot be reused yet. */
const BYTES_PER_RECORD = 1024
const LEAST_BYTES = 4 * 1024 ** 2
/** Batches between two saves of the progress: the most that a crash makes the next start repeat. */
const SAVE_EVERY = 10

/** The stored progress: everything up to `after` is converted. */
interface Saved {
	migration: string
	prefix: Key
	after: Key
	/** Records so far, of all migrations. */
	done: number
}

/** Called after each batch with the numbers of converted records and of all records. */
type Report = (done: number, all: number, migration: Migration) => void

/** The migrations of the built-in plugins, by format, then by name: the order in which they run. */
export async function allMigrations(): Promise<Migration[]> {
	const lists = [...(await ownParts<readonly Migration[]>('migrations.ts')).values()]
	return lists.flat().toSorted((a, b) => a.format - b.format || (a.name < b.name ? -1 : 1))
}

/** Those that data with this mark needs. */
export async function migrationsFor(mark: FormatMark): Promise<Migration[]> {
	return (await allMigrations()).filter((migration) => migration.format > (mark.from ?? mark.format))
}

export interface MigrateOptions {
	store: Store
	format: DataFormat
	migrations: readonly Migration[]
	report: Report
}

/** Throws the Fault of a refused write, such as `storage_full`; the next call continues where this one stopped. */
export async function migrate({ store, format: data, migrations, report }: MigrateOptions): Promise<void> {
	const { format: found, from = found } = data.mark()
	// From here on, programs of the older format refuse the data.
	await data.change({ format, since: formatSince, from })
	const stored = (await store.get<Saved>(progressKey))?.value
	const first = migrations.findIndex(({ name }) => name === stored?.migration)
	const todo = migrations.slice(Math.max(0, first))
	let saved = first < 0 ? undefined : stored
	let done = saved?.done ?? 0
	const all = done + (await countIn(store, todo, saved))
	for (const migration of todo) {
		/** Of the batches since the last save. They are written in parallel, which takes half of the time. */
		let commits: Promise<unknown>[] = []
		let unsaved = 0
		try {
			for await (const { prefix, entries } of batchesOf(store, migration, saved)) {
				for (const [scope, ops] of Map.groupBy(await migration.convert(entries, store), ({ key }) => key[0])) {
					const commit = store.commit(scope, ops)
					commit.catch(() => {}) // `Promise.all` below throws its error
					commits.push(commit)
				}
				done += entries.length
				report(done, all, migration)
				if (++unsaved < SAVE_EVERY) continue
				await Promise.all(commits)
				const after = entries.at(-1)?.key as Key
				await store.put(progressKey, { migration: migration.name, prefix, after, done } satisfies Saved)
				commits = []
				unsaved = 0
			}
			await Promise.all(commits)
		} catch (error) {
			await Promise.allSettled(commits)
			throw stopped(migration, error)
		}
		saved = undefined
	}
	await store.delete(progressKey)
	await data.change({ format, since: formatSince })
}

/** The number of records that these migrations read. */
export async function countIn(store: Reader, migrations: readonly Migration[], saved?: Saved): Promise<number> {
	let count = 0
	for (const [at, migration] of migrations.entries())
		for await (const { prefix, ...rest } of placesOf(store, migration, at === 0 ? saved : undefined))
			for await (const _ of store.keys(prefix, rest)) count++
	return count
}

/** The bytes by which the data file may grow while so many records are converted. */
export function growthOf(records: number): number {
	return records === 0 ? 0 : LEAST_BYTES + records * BYTES_PER_RECORD
}

type Rest = RecordRange & { after?: Key }

/** The remaining places of a migration; the first one begins where it stopped. */
async function* placesOf(store: Reader, migration: Migration, saved?: Saved): AsyncGenerator<Rest> {
	const places = await Array.fromAsync(migration.places(store))
	const at = saved ? places.findIndex(({ prefix }) => joinKey(prefix) === joinKey(saved.prefix)) : -1
	for (const [index, place] of places.slice(Math.max(0, at)).entries())
		yield saved && at >= 0 && index === 0 ? { ...place, after: saved.after } : place
}

async function* batchesOf(store: Reader, migration: Migration, saved?: Saved) {
	for await (const { prefix, ...rest } of placesOf(store, migration, saved)) {
		let entries: Entry<unknown>[] = []
		for await (const entry of store.list(prefix, rest)) {
			if (entries.push(entry) < BATCH) continue
			yield { prefix, entries }
			entries = []
		}
		if (entries.length > 0) yield { prefix, entries }
	}
}

function stopped({ about }: Migration, error: unknown): Error {
	const message = `the upgrade of the home stopped at its ${about}: ${messageOf(error)}. Nothing is lost: fix the cause and start again; the upgrade continues there`
	return isFault(error) ? new Fault(error.code, message, { cause: error }) : new Error(message, { cause: error })
}
