import { spawnSync } from 'node:child_process'
import {
	closeSync,
	mkdirSync,
	openSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	writeFileSync,
	writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DataFile } from '../../../core/backup/data-file.ts'
import { openEnv } from '../../../core/store/lmdb/env.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { entry } from '../../contracts/store/log.ts'
import { markFormat } from '../../support/format.ts'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { eventually } from '../../support/wait.ts'
import { testFolder } from '../../support/folder.ts'

const home = testFolder(t)
const mebi = 1024 * 1024

void t.test('creates a folder that only its owner can read', async (t) => {
	const path = join(home, 'deep/er/with.dot')
	await using engine = await openLmdb({ path })
	await engine.store.put(['a'], 1)
	t.equal(statSync(path).mode & 0o777, 0o700)
	for (const file of ['data.mdb', 'lock.mdb']) t.equal(statSync(join(path, file)).mode & 0o777, 0o600)
})

void t.test('refuses a folder that it cannot use', async (t) => {
	writeFileSync(join(home, 'file'), '')
	await t.rejects(openLmdb({ path: join(home, 'file/data') }), { code: 'unavailable', message: join(home, 'file') })
})

void t.test('groups concurrent writes into a few transactions', async (t) => {
	const path = join(home, 'groups')
	await using engine = await openLmdb({ path })
	const before = transactions(path)
	await Promise.all(Array.from({ length: 5000 }, (_, i) => engine.store.put(['k', String(i)], i)))
	const used = transactions(path) - before
	t.ok(used <= 6, `5,000 writes used ${used} transactions`)
	t.equal((await Array.fromAsync(engine.store.list(['k']))).length, 5000)
})

void t.test('shows an accepted write only once it is durable', async (t) => {
	const path = join(home, 'pending')
	await using engine = await openLmdb({ path })
	const before = transactions(path)
	const written = engine.store.put(['a'], 1)
	t.strictSame(await Array.fromAsync(engine.store.list(['a'])), [])
	t.equal(transactions(path), before)
	t.equal((await engine.store.get(['a']))?.value, 1)
	t.equal(transactions(path), before + 1, 'the reader waited for the writer')
	await written
})

void t.test('completes accepted writes before it closes, and leaves no timer', async (t) => {
	const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
	const before = timers()
	const path = join(home, 'close')
	const engine = await openLmdb({ path })
	await engine.queue.enqueue({ id: 'a', body: {} })
	for await (const lease of engine.queue.claim(() => 1, new AbortController().signal)) {
		await lease.release(3_600_000)
		break
	}
	const writes = Array.from({ length: 3000 }, (_, i) => engine.store.put(['k', String(i)], i))
	await engine[Symbol.asyncDispose]()
	await Promise.all(writes)
	t.ok(timers() <= before)
	await using again = await openLmdb({ path })
	t.equal((await Array.fromAsync(again.store.list(['k']))).length, 3000)
})

void t.test('refuses writes while the disk is nearly full, but reads and deletes', async (t) => {
	let free = 200 * mebi
	const path = join(home, 'full')
	await using engine = await openLmdb({ path, minFreeBytes: 64 * mebi, freeBytes: () => free })
	await engine.store.put(['a'], 1)
	await engine.store.put(['b'], 2)
	await engine.queue.enqueue({ id: 'j', body: {} })
	t.equal(engine.trouble(), null)

	free = 60 * mebi
	await eventually(() => engine.trouble() !== null)
	t.match(engine.trouble(), `60 MiB are free on the disk of ${path}, and 64 MiB must stay free`)
	await t.rejects(engine.store.put(['a'], 3), { code: 'storage_full' })
	await t.rejects(engine.log.append(null, 0, [entry(null, 0)]), { code: 'storage_full' })
	await t.rejects(engine.queue.enqueue({ id: 'k', body: {} }), { code: 'storage_full' })
	t.equal((await engine.store.get(['a']))?.value, 1)
	await engine.store.delete(['b'])
	t.equal(await engine.store.get(['b']), undefined)
	for await (const lease of engine.queue.claim(() => 1, new AbortController().signal)) {
		await lease.ack()
		break
	}
	t.equal(engine.queue.waiting(), 0)

	free = 7 * mebi
	await eventually(() => engine.trouble()?.includes('only 7') === true)
	await t.rejects(engine.store.delete(['a']), { code: 'storage_full' }, 'a deletion needs some space, too')

	free = 200 * mebi
	await eventually(() => engine.trouble() === null)
	await engine.store.put(['a'], 3)
	t.equal((await engine.store.get(['a']))?.value, 3)
	t.equal(engine.log.head(), '0')
})

void t.test('counts accepted writes that are not yet on the disk', async (t) => {
	await using engine = await openLmdb({
		path: join(home, 'pending-space'),
		minFreeBytes: 10 * mebi,
		freeBytes: () => 20 * mebi,
	})
	const writes = Array.from({ length: 8 }, (_, i) => engine.store.put(['k', String(i)], 'x'.repeat(3 * mebi)))
	const outcomes = await Promise.allSettled(writes)
	t.strictSame(
		outcomes.map(({ status }) => status === 'fulfilled'),
		[true, true, true, false, false, false, false, false],
	)
})

void t.test('opens on a full disk, for reading', async (t) => {
	const path = join(home, 'opens-full')
	await openLmdb({ path, freeBytes: () => 0 }).then((engine) => engine[Symbol.asyncDispose]())
	const engine = await openLmdb({ path })
	await engine.store.put(['a'], 1)
	await engine[Symbol.asyncDispose]()
	await using full = await openLmdb({ path, freeBytes: () => 0 })
	t.equal((await full.store.get(['a']))?.value, 1)
	await t.rejects(full.store.put(['a'], 2), { code: 'storage_full' })
})

void t.test('states why the free space cannot be read', async (t) => {
	await using engine = await openLmdb({
		path: join(home, 'no-space'),
		freeBytes() {
			throw new Error('the disk has gone')
		},
	})
	t.match(engine.trouble(), 'the disk has gone')
	await t.rejects(engine.store.put(['a'], 1), { code: 'unavailable' })
})

void t.test('accepts no writes after one has failed, and loses no earlier one', { skip: !hasShell() }, async (t) => {
	const path = join(home, 'failing')
	mkdirSync(path)
	const child = fileURLToPath(new URL('./failing-child.ts', import.meta.url))
	// The files of this process are limited to 2,000 KiB. The write that exceeds that fails.
	const script = `trap '' XFSZ; ulimit -f 2000; exec "$0" "$@"`
	const { stdout, stderr, status, signal } = spawnSync('bash', ['-c', script, process.execPath, child, path], {
		encoding: 'utf8',
	})
	t.strictSame([status, signal], [0, null], stderr)
	const result = JSON.parse(stdout) as Record<string, unknown>
	t.ok((result['acknowledged'] as number) > 100)
	t.strictSame(
		[result['readable'], result['lost'], result['codes']],
		[result['acknowledged'], false, ['unavailable']],
		'every acknowledged write, and no other, can be read',
	)
	t.match(result['trouble'], 'a write to the disk has failed')
	await using engine = await openLmdb({ path })
	t.equal((await Array.fromAsync(engine.store.list(['k']))).length, result['acknowledged'])
	await engine.store.put(['after'], 'works again')
})

void t.test('keeps a real small disk from filling up', { skip: !canMount }, async (t) => {
	const disk = smallDisk(t, '24m')
	await using engine = await openLmdb({ path: join(disk, 'data'), minFreeBytes: 8 * mebi })
	writeFileSync(join(disk, 'filler'), Buffer.alloc(4 * mebi))
	let written = 0
	const write = async (): Promise<void> => {
		for (;;) await engine.store.put(['k', String(++written)], 'x'.repeat(written % 10_000))
	}
	await t.rejects(Promise.all(Array.from({ length: 10 }, write)), { code: 'storage_full' })
	const before = (await Array.fromAsync(engine.store.list(['k']))).length
	t.ok(before > 500)
	for (let i = 1; i <= 100; i++) await engine.store.delete(['k', String(i)])
	await t.rejects(engine.store.put(['new'], 1), { code: 'storage_full' })
	rmSync(join(disk, 'filler'))
	await eventually(() => engine.trouble() === null)
	await engine.store.put(['new'], 'x'.repeat(100))
})

void t.test('creates no data on a real full disk, and opens existing data', { skip: !canMount }, async (t) => {
	const disk = smallDisk(t, '2m')
	const path = join(disk, 'data')
	const filler = join(disk, 'filler')
	writeFileSync(filler, Buffer.alloc(1.5 * mebi))
	await t.rejects(openLmdb({ path }), {
		code: 'unavailable',
		message: /data cannot be opened: only \d+ KiB are free on its disk, and new data files need 1 MiB; make room there/,
	})
	t.strictSame(readdirSync(path), [])
	rmSync(filler)
	await openLmdb({ path, minFreeBytes: 0 }).then((engine) => engine[Symbol.asyncDispose]())
	writeFileSync(filler, Buffer.alloc(1.5 * mebi))
	await openLmdb({ path }).then((engine) => engine[Symbol.asyncDispose]())
})

void t.test('detects a missing record of a run', async (t) => {
	const path = join(home, 'chain')
	const engine = await openLmdb({ path })
	for (let i = 0; i < 3; i++) await engine.log.append('r', i, [entry('r', i + 1)])
	await engine[Symbol.asyncDispose]()
	const { tables, root } = openEnv(path)
	const [, second] = [...tables.runs.getKeys({ start: 'r' })]
	await tables.runs.remove(second ?? '')
	await root.close()
	await using again = await openLmdb({ path })
	await t.rejects(again.log.journal('r'), { code: 'store_damaged', message: 'gap after sequence 1' })
})

void t.test('refuses to read a record that is damaged while the store is open, and reads the others', async (t) => {
	const path = join(home, 'open')
	await using engine = await openLmdb({ path })
	await engine.store.put(['k', 'one'], 'UNIQUE-TEXT-ONE')
	await engine.store.put(['k', 'two'], 'UNIQUE-TEXT-TWO')
	const file = openSync(join(path, 'data.mdb'), 'r+')
	t.teardown(() => closeSync(file))
	const bytes = readFileSync(join(path, 'data.mdb'))
	// Former versions of the page also contain it.
	for (let at = bytes.indexOf('TEXT-ONE'); at >= 0; at = bytes.indexOf('TEXT-ONE', at + 1)) writeSync(file, 'F', at)
	await t.rejects(engine.store.get(['k', 'one']), { code: 'store_damaged', message: '["k","one"]' })
	await t.rejects(engine.store.create(['k', 'one'], 1), { code: 'store_damaged' })
	await t.rejects(Array.fromAsync(engine.store.list(['k'])), { code: 'store_damaged' })
	t.equal((await engine.store.get(['k', 'two']))?.value, 'UNIQUE-TEXT-TWO')
	await engine.store.put(['k', 'one'], 'written again')
	t.equal((await engine.store.get(['k', 'one']))?.value, 'written again')
})

void t.test('refuses data of a newer format and does not change it', async (t) => {
	const path = join(home, 'newer')
	await openLmdb({ path }).then((engine) => engine[Symbol.asyncDispose]())
	await markFormat(path, 99)
	await t.rejects(openLmdb({ path }), {
		code: 'unavailable',
		message: /has format 99.*start the version that wrote it/,
	})
	await markFormat(path, 99, '9.8.0')
	const before = readFileSync(join(path, 'data.mdb'))
	await t.rejects(openLmdb({ path }), { message: /has format 99.*start version 9\.8\.0 or a newer one/ })
	t.ok(readFileSync(join(path, 'data.mdb')).equals(before))
})

void t.test('opens data of an older format without changing it', async (t) => {
	const path = join(home, 'older')
	await openLmdb({ path }).then((engine) => engine[Symbol.asyncDispose]())
	await markFormat(path, 1)
	const before = readFileSync(join(path, 'data.mdb'))
	const engine = await openLmdb({ path })
	t.strictSame(engine.format?.mark(), { format: 1 })
	await engine[Symbol.asyncDispose]()
	t.ok(readFileSync(join(path, 'data.mdb')).equals(before))
})

/** The number of the last transaction in the data file. */
function transactions(path: string): number {
	using file = new DataFile(join(path, 'data.mdb'))
	return file.head().transaction
}

function hasShell(): boolean {
	return spawnSync('bash', ['-c', 'true']).status === 0
}
