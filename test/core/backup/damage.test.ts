/** A backup with one bit changed, cut off, or with something behind it is refused, wherever that is. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import { readBackup, readManifest, verifyBackup } from '../../../core/backup/verify.ts'
import { folderFor, smallBackup } from './support.ts'

/** Random flips; `all`: every bit of a small backup. */
const flips = process.env['BACKUP_FLIPS'] ?? '100'

const folder = folderFor(t)
const { file } = await smallBackup(folder)
const whole = readFileSync(file)
const copy = join(folder, 'copy.tar.gz')

/** Null where it is refused as damaged; otherwise what came instead. */
async function refusal(bytes: Buffer): Promise<string | null> {
	writeFileSync(copy, bytes)
	try {
		await readBackup(copy)
		return 'it was taken'
	} catch (error) {
		return isFault(error, 'backup_damaged') ? null : String(error)
	}
}

function flipped(bit: number): Buffer {
	const bytes = Buffer.from(whole)
	bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
	return bytes
}

void t.test('the backup itself is taken', async (t) => {
	t.equal(await refusal(whole), 'it was taken')
	t.equal((await verifyBackup(file)).bytes, whole.length)
})

void t.test('each flipped bit of its head and its end, and of bytes between, is noticed', async (t) => {
	const bits = whole.length * 8
	const chosen =
		flips === 'all'
			? Array.from({ length: bits }, (_, bit) => bit)
			: [
					// gzip's head with the digest, every bit of the first and last bytes, then anywhere.
					...Array.from({ length: 93 }, (_, byte) => byte * 8 + (byte % 8)),
					...Array.from({ length: 80 }, (_, bit) => bit),
					...Array.from({ length: 128 }, (_, bit) => bits - 1 - bit),
					...Array.from({ length: Number(flips) }, () => Math.floor(Math.random() * bits)),
				]
	const wrong: string[] = []
	for (const bit of chosen) {
		const found = await refusal(flipped(bit))
		if (found !== null) wrong.push(`bit ${bit & 7} of byte ${bit >> 3}: ${found}`)
	}
	t.strictSame(wrong, [])
	t.comment(`${chosen.length} flips of ${bits} bits`)
})

void t.test('each length but its own is noticed, and whatever stands behind it', async (t) => {
	const lengths = [0, 1, 9, 10, 11, 50, 92, 93, 94, whole.length - 8, whole.length - 1]
	for (let n = 0; n < 40; n++) lengths.push(Math.floor(Math.random() * whole.length))
	for (const length of lengths) t.equal(await refusal(whole.subarray(0, length)), null, `${length} bytes`)
	for (const garbage of ['\0', 'x', '\0'.repeat(512), '\0'.repeat(10_240)])
		t.equal(await refusal(Buffer.concat([whole, Buffer.from(garbage)])), null, `${garbage.length} more bytes`)
	t.equal(await refusal(Buffer.concat([whole, whole])), null, 'twice')
	t.equal(await refusal(Buffer.alloc(whole.length)), null, 'zeros')
	for (const [from, to] of [
		[100, 612],
		[whole.length - 600, 1200],
	] as const) {
		const swapped = Buffer.from(whole)
		whole.copy(swapped, from, to, to + 64)
		whole.copy(swapped, to, from, from + 64)
		t.equal(await refusal(swapped), null, 'pieces swapped')
	}
})

void t.test('a damaged head says what is wrong where backups are listed', async (t) => {
	for (let n = 0; n < 100; n++) {
		writeFileSync(copy, flipped(Math.floor(Math.random() * whole.length * 8)))
		const found = await readManifest(copy).catch((error: unknown) => error)
		t.ok(!(found instanceof Error) || isFault(found), String(found))
	}
})
