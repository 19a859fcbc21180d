import { mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { checkFile } from '../../../core/backup/check-file.ts'
import { DataFile } from '../../../core/backup/data-file.ts'
import { openEnv } from '../../../core/store/lmdb/env.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { Reserve } from '../../../core/store/lmdb/reserve.ts'
import { watchSpace } from '../../../core/store/lmdb/space.ts'
import { openWriter } from '../../../core/store/lmdb/writer.ts'
import { testFolder } from '../../support/folder.ts'

const home = testFolder(t)
const mebi = 1024 * 1024
const everything = { wholeBytes: Number.POSITIVE_INFINITY, withinMs: Number.POSITIVE_INFINITY }
const { type } = statfsSync(home)
const skip = type !== 0xef53 && type !== 0x5846_5342 && 'the temporary folder is not on ext4 or XFS'

/** The length of the file, and the length that LMDB uses. */
function lengths(path: string): { size: number; used: number } {
	using file = new DataFile(join(path, 'data.mdb'))
	return { size: file.size, used: (file.head().lastPage + 1) * 4096 }
}

void t.test('extends the file ahead of its pages, in few steps', { skip }, async (t) => {
	const path = join(home, 'ahead')
	const sizes = new Set<number>()
	const ends = new Set<number>()
	const texts = new Map<string, string>()
	let most = 0
	{
		await using engine = await openLmdb({ path })
		for (let i = 0; i < 1500; i++) {
			texts.set(String(i), String(i).repeat(1 + ((i * 7919) % 1000)))
			await engine.store.put(['k', String(i)], texts.get(String(i)))
			const { size, used } = lengths(path)
			sizes.add(size)
			ends.add(used)
			most = Math.max(most, size - used)
		}
	}
	t.ok(most <= mebi, `${most} bytes of zeros`)
	t.ok(sizes.size * 4 < ends.size, `${sizes.size} lengths for ${ends.size} last pages`)
	const { damage, records } = checkFile(join(path, 'data.mdb'), everything)
	t.strictSame([damage, records > 1500], [null, true])
	await using again = await openLmdb({ path })
	const stored = await Array.fromAsync(again.store.list<string>(['k']))
	t.strictSame(new Map(stored.map(({ key, value }) => [key[1], value])), texts)
})

void t.test('writes no zeros if the disk has little space', { skip }, async (t) => {
	const path = join(home, 'little')
	await using engine = await openLmdb({ path, minFreeBytes: 64 * mebi, freeBytes: () => 100 * mebi })
	for (let i = 0; i < 200; i++) await engine.store.put(['k', String(i)], 'x'.repeat(2000))
	const { size, used } = lengths(path)
	t.ok(size <= used, `${size - used} bytes of zeros`)
})

void t.test('begins no transaction while zeros are written', async (t) => {
	const path = join(home, 'apart')
	mkdirSync(path)
	const env = openEnv(path)
	const zeros: PromiseWithResolvers<void>[] = []
	const reserve: Reserve = {
		extend() {
			zeros.push(Promise.withResolvers())
			return zeros.at(-1)?.promise
		},
		close() {},
	}
	const writer = openWriter(env, watchSpace(path, 0), reserve)
	const put = (key: string): Promise<void> =>
		writer.write([{ table: env.tables.records, key, bytes: Buffer.from(key) }])
	let transactions = 0
	env.root.on('beforecommit', () => transactions++)
	await put('a')
	t.strictSame([zeros.length, transactions], [1, 1])
	const later = [put('b'), put('c')]
	// A transaction begins at the end of the turn in which it is written.
	await turn()
	await turn()
	t.equal(transactions, 1)
	zeros[0]?.resolve()
	await Promise.all(later)
	t.equal(transactions, 2)
	zeros[1]?.resolve()
	await writer.drain()
	await env.root.close()
})

void t.test('closes only once the zeros are written', async (t) => {
	const path = join(home, 'closes')
	mkdirSync(path)
	const env = openEnv(path)
	const zeros = Promise.withResolvers<void>()
	const writer = openWriter(env, watchSpace(path, 0), { extend: () => zeros.promise, close() {} })
	await writer.write([{ table: env.tables.records, key: 'a', bytes: Buffer.from('a') }])
	let isDrained = false
	const drained = writer.drain().then(() => (isDrained = true))
	await turn()
	t.equal(isDrained, false)
	zeros.resolve()
	await drained
	await env.root.close()
})
