import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import { checkFile } from '../../../core/backup/check-file.ts'
import { checkFolder } from '../../../core/backup/check-folder.ts'
import { DataFile } from '../../../core/backup/data-file.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { Engine } from '../../../core/store/ports.ts'
import { entry } from '../../contracts/store/log.ts'
import { fileDamages, flipBit, pageDamages } from './damage.ts'
import { testFolder } from '../../support/folder.ts'

const home = testFolder(t)
const everything = { wholeBytes: Number.POSITIVE_INFINITY, withinMs: Number.POSITIVE_INFINITY }
const records = 80
const runs = 20
const pageSize = 4096

t.before(async () => {
	await using engine = await openLmdb({ path: join(home, 'sound') })
	for (let round = 0; round < 3; round++) {
		const writes: Promise<unknown>[] = []
		for (let i = 0; i < records; i++) writes.push(engine.store.put(['k', String(i)], valueOf(i)))
		for (let i = 0; i < records; i++) writes.push(engine.store.put(['short', `${round}-${i}`], 'x'.repeat(200)))
		await Promise.all(writes)
		// Leaves free pages behind, whose list can be damaged as well.
		await Promise.all(Array.from({ length: records }, (_, i) => engine.store.delete(['short', `${round}-${i}`])))
	}
	for (let i = 0; i < runs; i++) {
		await engine.log.append(`r${i}`, 0, [{ ...entry(`r${i}`, 1), step: i }, entry(`r${i}`, 2)])
		await engine.queue.enqueue({ id: `j${i}`, body: { i } })
	}
})

/** Without the zeros after its last page, where damage has no effect. */
function soundFile(): Buffer {
	const path = join(home, 'sound/data.mdb')
	using file = new DataFile(path)
	return readFileSync(path).subarray(0, (file.head().lastPage + 1) * pageSize)
}

void t.test('finds every kind of damage to a page that is in use', async (t) => {
	const sound = soundFile()
	const count = sound.length / pageSize
	for (const [name, damage] of Object.entries(pageDamages)) {
		let refused = 0
		for (let page = 0; page < count; page++) {
			const outcome = await openDamaged(damage(sound, page), 'write')
			if (outcome === 'refused') refused++
			else if (outcome !== 'complete') t.fail(`${name}, page ${page}: ${outcome}`)
		}
		t.ok(refused > count / 4, `a file ${name}: ${refused} of ${count} were refused`)
	}
})

void t.test('refuses a completely damaged file', async (t) => {
	const sound = soundFile()
	for (const [name, damage] of Object.entries(fileDamages))
		t.equal(await openDamaged(damage(sound), 'read'), 'refused', name)
})

void t.test('never returns wrong data from a file with a flipped bit', async (t) => {
	const sound = soundFile()
	const bits = sound.length * 8
	let refused = 0
	// Spread over the file, and over the bits of a byte.
	for (let i = 0; i < 120; i++) {
		const bit = (i * 1_000_003) % bits
		const outcome = await openDamaged(flipBit(sound, bit), 'read')
		if (outcome === 'refused') refused++
		else if (outcome !== 'complete') t.fail(`bit ${bit}: ${outcome}`)
	}
	t.ok(refused > 15, `${refused} of 120 were refused`)
})

void t.test('states the damage and what to do', async (t) => {
	const path = join(home, 'message')
	put(path, pageDamages['cut off'](readFileSync(join(home, 'sound/data.mdb')), 5))
	const error = await openChecked(path).catch((error: unknown) => error)
	t.ok(isFault(error, 'store_damaged'))
	t.match(String(error), `${path}/data.mdb is damaged: it is cut off at 20480 bytes. Restore a backup in its place`)
	t.match(String(error), `move the folder ${path} away`)
})

void t.test('finds no damage in sound files', async (t) => {
	t.match(checkFile(join(home, 'sound/data.mdb'), everything), { damage: null, complete: true })
	const { records: seen } = checkFile(join(home, 'sound/data.mdb'), everything)
	t.ok(seen >= records + 3 * runs)
	await openLmdb({ path: join(home, 'fresh') }).then((engine) => engine[Symbol.asyncDispose]())
	t.match(checkFile(join(home, 'fresh/data.mdb'), everything), { damage: null, complete: true })
})

void t.test('checks a part of a large file, within the time limit', async (t) => {
	const full = checkFile(join(home, 'sound/data.mdb'), everything)
	const part = checkFile(join(home, 'sound/data.mdb'), { ...everything, wholeBytes: 2 * pageSize })
	t.match(part, { damage: null, complete: false })
	t.ok(part.pages < full.pages && part.records > 0)
	t.match(checkFile(join(home, 'sound/data.mdb'), { ...everything, withinMs: -1 }), { damage: null, complete: false })
})

void t.test('finds damage in a record of several pages', async (t) => {
	const path = join(home, 'large')
	const engine = await openLmdb({ path })
	for (let i = 0; i < 3; i++) await engine.store.put(['large', String(i)], 'x'.repeat(2_000_000 + i))
	await engine[Symbol.asyncDispose]()
	await openChecked(path).then((again) => again[Symbol.asyncDispose]())
	const file = readFileSync(join(path, 'data.mdb'))
	put(path, flipBit(file, file.indexOf('x'.repeat(1000)) * 8))
	await t.rejects(openChecked(path), { code: 'store_damaged' })
})

/** As the gateway opens its store. */
async function openChecked(path: string): Promise<Engine> {
	checkFolder(path)
	return openLmdb({ path })
}

/** Opens the file, reads every record, and writes if `mode` says so. This process must survive that. */
async function openDamaged(bytes: Buffer, mode: 'read' | 'write'): Promise<string> {
	const path = join(home, 'damaged')
	put(path, bytes)
	let engine: Engine
	try {
		engine = await openChecked(path)
	} catch (error) {
		if (isFault(error, 'store_damaged')) return 'refused'
		throw error
	}
	try {
		for (let i = 0; i < records; i++) {
			const found = (await engine.store.get(['k', String(i)]))?.value
			if (found !== valueOf(i)) return `record ${i} is ${JSON.stringify(found)?.slice(0, 40)}`
		}
		for (let i = 0; i < runs; i++) {
			const { last, steps } = await engine.log.journal(`r${i}`)
			if (last !== 2 || steps[0] !== i) return `run ${i} is at ${last} with ${steps.length} steps`
		}
		if (engine.queue.waiting() !== runs) return `${engine.queue.waiting()} jobs wait`
		if (mode === 'read') return 'complete'
		// Uses free pages.
		await Promise.all(Array.from({ length: records }, (_, i) => engine.store.put(['new', String(i)], 'y'.repeat(400))))
		for (let i = 0; i < records; i++)
			if ((await engine.store.get(['k', String(i)]))?.value !== valueOf(i)) return `record ${i} was overwritten`
		return 'complete'
	} finally {
		await engine[Symbol.asyncDispose]()
	}
}

/** A few values are so long that they need separate pages. */
function valueOf(i: number): string {
	return `value ${i} `.repeat(i % 50 === 0 ? 900 : 1 + (i % 30))
}

function put(path: string, bytes: Buffer): void {
	mkdirSync(path, { recursive: true })
	writeFileSync(join(path, 'data.mdb'), bytes)
}
