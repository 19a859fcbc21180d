/** Migrations of a small store: order, resuming after a crash, and a disk that becomes full. */
import { join } from 'node:path'
import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import { format, formatSince } from '../../../core/store/format.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { LmdbOptions } from '../../../core/store/lmdb/open.ts'
import type { Engine, Entry } from '../../../core/store/ports.ts'
import { migrate } from '../../../core/upgrade/migrate.ts'
import type { Migration } from '../../../core/upgrade/migration.ts'
import { markFormat } from '../../support/format.ts'
import { eventually } from '../../support/wait.ts'
import { testFolder } from '../../support/folder.ts'

const home = testFolder(t)
const RECORDS = 1_000
const MIB = 1024 ** 2

interface Old {
	text: string
}
interface New {
	words: string[]
	/** The number of conversions. */
	times: number
}

/** Splits texts into words. `called`: receives the keys of the records, in order. */
function splitting(scope: string, called: string[] = []): Migration {
	return {
		name: `split-${scope}`,
		about: `texts of ${scope}`,
		format: 2,
		places: () => [{ prefix: [scope, 'text'] }],
		convert(entries) {
			called.push(...entries.map(({ key }) => key.join('/')))
			return (entries as Entry<Old | New>[]).flatMap(({ key, value, rev }) =>
				'text' in value ? [{ key, value: { words: value.text.split(' '), times: 1 } satisfies New, expect: rev }] : [],
			)
		},
	}
}

async function withOldStore(
	name: string,
	work: (open: (options?: Partial<LmdbOptions>) => Promise<Engine>) => Promise<void>,
) {
	const path = join(home, name)
	{
		await using engine = await openLmdb({ path })
		await Promise.all(
			['a', 'b'].flatMap((scope) =>
				Array.from({ length: RECORDS }, (_, at) =>
					engine.store.put([scope, 'text', String(at).padStart(4, '0')], { text: `word ${at}` } satisfies Old),
				),
			),
		)
	}
	await markFormat(path, 1)
	await work((options) => openLmdb({ path, ...options }))
}

const run = async ({ store, format: data }: Engine, migrations: readonly Migration[], report = () => {}) => {
	if (!data) throw new Error('the engine has no format')
	await migrate({ store, format: data, migrations, report })
}

const converted = async ({ store }: Engine, scope: string): Promise<New[]> =>
	(await Array.fromAsync(store.list<New>([scope, 'text']))).map(({ value }) => value)

void t.test('all records are converted in order, and no progress record is left', async (t) => {
	await withOldStore('complete', async (open) => {
		const called: string[] = []
		const reported: number[][] = []
		await using engine = await open()
		const report = (...args: unknown[]): void => void reported.push(args.slice(0, 2) as number[])
		await run(engine, [splitting('a', called), splitting('b', called)], report)
		t.equal(called.length, 2 * RECORDS)
		t.strictSame(called, called.toSorted())
		for (const scope of ['a', 'b'])
			t.strictSame(
				(await converted(engine, scope)).map(({ words }) => words),
				Array.from({ length: RECORDS }, (_, at) => ['word', String(at)]),
			)
		t.strictSame(engine.format?.mark(), { format, since: formatSince })
		t.strictSame(reported.at(-1), [2 * RECORDS, 2 * RECORDS])
		t.strictSame(await Array.fromAsync(engine.store.list(['upgrade'])), [])
	})
})

void t.test('an interrupted migration resumes, and converts no record twice', async (t) => {
	await withOldStore('interrupted', async (open) => {
		const called: string[] = []
		for (const stop of [300, 700, 1_200, 1_600]) {
			const engine = await open()
			const breaking = [splitting('a', called), splitting('b', called)].map((one): Migration => ({
				...one,
				convert(entries, store) {
					if (called.length >= stop) throw new Fault('unavailable', 'power failure')
					return one.convert(entries, store)
				},
			}))
			await t.rejects(run(engine, breaking), {
				code: 'unavailable',
				message: /stopped at its texts of .: power failure/,
			})
			t.equal(engine.format?.mark().from, 1)
			await engine[Symbol.asyncDispose]()
		}
		await using engine = await open()
		t.strictSame(engine.format?.mark(), { format, since: formatSince, from: 1 })
		await run(engine, [splitting('a', called), splitting('b', called)])
		// After each of the four interruptions, at most ten batches of forty are read again.
		t.ok(called.length <= 2 * RECORDS + 4 * 400, String(called.length))
		t.ok(called.length > 2 * RECORDS, 'some records are read again')
		for (const scope of ['a', 'b'])
			t.ok((await converted(engine, scope)).every(({ words, times }) => words.length === 2 && times === 1))
		t.strictSame(engine.format?.mark(), { format, since: formatSince })
	})
})

void t.test('a disk that becomes full loses no record, and the migration resumes once there is space', async (t) => {
	await withOldStore('full', async (open) => {
		let free = 200 * MIB
		const engine = await open({ minFreeBytes: 64 * MIB, freeBytes: () => free })
		const called: string[] = []
		const filling: Migration = {
			...splitting('a'),
			async convert(entries, store) {
				called.push(...entries.map(({ key }) => key.join('/')))
				if (called.length >= 400) {
					free = 60 * MIB
					await eventually(async () => engine.trouble() !== null)
				}
				return splitting('a').convert(entries, store)
			},
		}
		await t.rejects(run(engine, [filling]), { code: 'storage_full', message: /Nothing is lost/ })
		t.ok(called.length < RECORDS)
		const texts = await Array.fromAsync(engine.store.list<Old | New>(['a', 'text']))
		t.equal(texts.length, RECORDS)
		t.strictSame(
			texts.map(({ value }) => ('text' in value ? value.text : value.words.join(' '))),
			Array.from({ length: RECORDS }, (_, at) => `word ${at}`),
		)
		await engine[Symbol.asyncDispose]()
		await using again = await open()
		await run(again, [splitting('a')])
		t.ok((await converted(again, 'a')).every(({ times }) => times === 1))
	})
})
