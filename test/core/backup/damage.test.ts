/** A backup with a flipped bit, a truncated one, and one with trailing bytes are refused. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import { readBackup, readHead, verifyBackup } from '../../../core/backup/verify.ts'
import { smallBackup } from './support.ts'
import { testFolder } from '../../support/folder.ts'

/** Random flips; `all`: every bit of a small backup. */
const flips = process.env['BACKUP_FLIPS'] ?? '100'

const folder = testFolder(t)
const { file } = await smallBackup(folder)
const sound = readFileSync(file)
const copy = join(folder, 'copy.tar.gz')

/** Null if it is refused as damaged; otherwise the outcome. */
async function refusal(bytes: Buffer): Promise<string | null> {
	writeFileSync(copy, bytes)
	try {
		await readBackup(copy)
		return 'accepted'
	} catch (error) {
		return isFault(error, 'backup_damaged') ? null : String(error)
	}
}

function flipped(bit: number): Buffer {
	const bytes = Buffer.from(sound)
	bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
	return bytes
}

void t.test('the undamaged backup is accepted', async (t) => {
	t.equal(await refusal(sound), 'accepted')
	t.equal((await verifyBackup(file)).bytes, sound.length)
})

void t.test('every flipped bit is detected: in the header, at the end and between', async (t) => {
	const bits = sound.length * 8
	const chosen =
		flips === 'all'
			? Array.from({ length: bits }, (_, bit) => bit)
			: [
					// The gzip header with the digest, every bit of the first and last bytes, then anywhere.
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

void t.test('truncation, trailing bytes and swapped blocks are detected', async (t) => {
	const lengths = [0, 1, 9, 10, 11, 50, 92, 93, 94, sound.length - 8, sound.length - 1]
	for (let n = 0; n < 40; n++) lengths.push(Math.floor(Math.random() * sound.length))
	for (const length of lengths) t.equal(await refusal(sound.subarray(0, length)), null, `${length} bytes`)
	for (const garbage of ['\0', 'x', '\0'.repeat(512), '\0'.repeat(10_240)])
		t.equal(await refusal(Buffer.concat([sound, Buffer.from(garbage)])), null, `${garbage.length} more bytes`)
	t.equal(await refusal(Buffer.concat([sound, sound])), null, 'twice')
	t.equal(await refusal(Buffer.alloc(sound.length)), null, 'zeros')
	for (const [from, to] of [
		[100, 612],
		[sound.length - 600, 1200],
	] as const) {
		const swapped = Buffer.from(sound)
		sound.copy(swapped, from, to, to + 64)
		sound.copy(swapped, to, from, from + 64)
		t.equal(await refusal(swapped), null, 'pieces swapped')
	}
})

void t.test('reading the manifest of a damaged backup fails with an expected error or not at all', async (t) => {
	for (let n = 0; n < 100; n++) {
		writeFileSync(copy, flipped(Math.floor(Math.random() * sound.length * 8)))
		const found = await readHead(copy).catch((error: unknown) => error)
		t.ok(!(found instanceof Error) || isFault(found), String(found))
	}
})
