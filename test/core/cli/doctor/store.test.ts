/** Kinds of damage to the data file: the doctor reports it, survives it, and does not change the file. */
import { chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { DataFile } from '../../../../core/backup/data-file.ts'
import { openStoreProcess } from '../../../../core/cli/doctor/store-process.ts'
import { openLmdb } from '../../../../core/store/lmdb/open.ts'
import { testFolder } from '../../../support/folder.ts'
import { examined, patience } from './healthy-home.ts'

const home = testFolder(t)
const file = join(home, 'data/data.mdb')
const sound = makeStore()

async function makeStore(): Promise<Buffer> {
	await using engine = await openLmdb({ path: join(home, 'data') })
	for (let batch = 0; batch < 20; batch++) {
		const ops = Array.from({ length: 50 }, (_, n) => ({
			key: ['test', `${batch}-${n}`] as const,
			value: { text: `record ${batch}-${n} `.repeat(20) },
		}))
		await engine.store.commit('test', ops)
	}
	await engine[Symbol.asyncDispose]()
	return readFileSync(file)
}

const damages: Record<string, (bytes: Buffer) => Buffer> = {
	'one bit of a record': (bytes) => flipped(bytes, bytes.indexOf('record 7-7 record') + 3),
	'a page of zeros': (bytes) => Buffer.from(bytes).fill(0, 5 * 4096, 6 * 4096),
	'the number of the last page': (bytes) => {
		const changed = Buffer.from(bytes)
		for (const head of [0, 4096]) changed.fill(0xff, head + 144, head + 152)
		return changed
	},
	'a root far after its last page': (bytes) => {
		const changed = Buffer.from(bytes)
		for (const head of [0, 4096]) for (const place of [88, 136, 144]) changed.fill(0xfe, head + place, head + place + 8)
		return changed
	},
	'its first meta page': (bytes) => Buffer.from(bytes).fill(0xff, 0, 4096),
	truncated: (bytes) => bytes.subarray(0, Math.floor(bytes.length / 3)),
	'truncated within its meta pages': (bytes) => bytes.subarray(0, 1000),
	empty: () => Buffer.alloc(0),
	garbage: (bytes) => randomBytes(bytes.length),
	'another file': () => Buffer.from('%PDF-1.7\n'.repeat(1000)),
}

for (const [name, damage] of Object.entries(damages)) {
	void t.test(name, async (t) => {
		const bytes = damage(await sound)
		writeFileSync(file, bytes)
		const { checks } = await examined(home, ['store.intact', 'token.expiry'])
		t.match(checks, [
			{ id: 'store.intact', level: 'error', message: /data file in .* is damaged: /, fix: /svc restore/ },
			{ id: 'token.expiry', level: 'note', message: /^not checked: the store cannot be read/, fix: /store\.intact/ },
		])
		t.ok(readFileSync(file).equals(bytes), 'the file is unchanged')
		// While a gateway runs, the check reads in an LMDB transaction, which may crash the process.
		await using checking = openStoreProcess({
			path: join(home, 'data'),
			running: true,
			env: { PATH: process.env.PATH },
			withinMs: patience.store,
		})
		t.type((await checking?.verdict)?.damage, 'string')
	})
}

void t.test('flipped bits anywhere do not crash the doctor', async (t) => {
	const bytes = await sound
	for (let round = 0; round < 2; round++) {
		let changed = bytes
		const places = Array.from({ length: 20 }, (_, n) => hashed(`${round} ${n}`) % bytes.length)
		for (const place of places) changed = flipped(changed, place)
		writeFileSync(file, changed)
		const [found] = (await examined(home, ['store.intact'])).checks
		// Some bytes have no effect, such as those of free pages.
		t.ok(found?.level === 'error' || found?.level === 'ok', `${found?.message} (${places.join(' ')})`)
		if (found?.level === 'error') t.match(found.message, /is damaged/)
	}
})

void t.test('an unreadable file is not reported as damaged', async (t) => {
	rmSync(file)
	mkdirSync(file)
	const [found] = (await examined(home, ['store.intact'])).checks
	t.match(found, { level: 'error', message: /cannot be read/, fix: /native\.lmdb/ })
	rmSync(file, { recursive: true })
	t.match((await examined(home, ['store.intact'])).checks, [{ level: 'ok', message: 'there is no data yet' }])
})

void t.test('a lock file that cannot be opened is named', async (t) => {
	writeFileSync(file, await sound)
	const lock = join(home, 'data/lock.mdb')
	rmSync(lock, { force: true })
	mkdirSync(lock)
	const [found] = (await examined(home, ['store.intact'])).checks
	t.match(found, { level: 'error', message: /cannot be read: EISDIR: .*lock\.mdb/ })
	rmSync(lock, { recursive: true })
})

void t.test('constant writes cause no finding, and the check leaves no reader slot', async (t) => {
	const path = testFolder(t)
	await using engine = await openLmdb({ path })
	const value = (n: number) => ({ text: `record ${n} `.repeat(100) })
	for (let batch = 0; batch < 40; batch++) {
		const ops = Array.from({ length: 100 }, (_, n) => ({ key: ['test', `${batch}-${n}`] as const, value: value(n) }))
		await engine.store.commit('test', ops)
	}
	let isOver = false
	const write = async (lane: number): Promise<void> => {
		for (let n = 0; !isOver; n++) await engine.store.put(['test', `${(n * 7) % 40}-${lane}`], value(n))
	}
	const lanes = [0, 1, 2, 3].map(write)
	for (let round = 0; round < 3; round++) {
		const checking = openStoreProcess({
			path,
			running: true,
			env: { PATH: process.env.PATH },
			withinMs: patience.store,
		})
		t.match(await checking?.verdict, { damage: null, refused: null, complete: true })
		await checking?.[Symbol.asyncDispose]()
	}
	isOver = true
	await Promise.all(lanes)
	// A reader slot that stayed would prevent the reuse of every page freed from now on.
	const size = (): number => {
		using file = new DataFile(join(path, 'data.mdb'))
		return (file.head().lastPage + 1) * 4096
	}
	const before = size()
	for (let n = 0; n < 400; n++) await engine.store.put(['test', `${n % 40}-0`], value(n))
	t.ok(size() - before < 1024 * 1024, `grown by ${size() - before} bytes`)
})

void t.test('a new lock file gets the owner of the data file', async (t) => {
	if (process.getuid?.() !== 0) return void t.pass('only root can give files away')
	writeFileSync(file, await sound)
	rmSync(join(home, 'data/lock.mdb'), { force: true })
	chownSync(file, 12_345, 12_345)
	const [found] = (await examined(home, ['store.intact'])).checks
	t.match(found, { level: 'ok' })
	t.equal(statSync(join(home, 'data/lock.mdb')).uid, 12_345)
})

function flipped(bytes: Buffer, at: number): Buffer {
	const copy = Buffer.from(bytes)
	copy[at] = (copy[at] as number) ^ 0x10
	return copy
}

/** A number below 2^32, the same in each run. */
function hashed(text: string): number {
	return hash('sha256', text, 'buffer').readUInt32LE(0)
}
