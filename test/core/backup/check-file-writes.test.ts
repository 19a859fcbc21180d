/** A data file that changes during its check, between any two of its reads. */
import fs, { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { checkFile } from '../../../core/backup/check-file.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { testFolder } from '../../support/folder.ts'

const home = testFolder(t)
const everything = { wholeBytes: Number.POSITIVE_INFINITY, withinMs: Number.POSITIVE_INFINITY }
const file = join(home, 'checked.mdb')

/** The data file after each of several commits, which make it grow and reuse free pages. */
async function makeStages(): Promise<Buffer[]> {
	const path = join(home, 'store')
	await using engine = await openLmdb({ path })
	const stages: Buffer[] = []
	for (let round = 0; round < 8; round++) {
		const keys = Array.from({ length: 60 }, (_, n) => ['k', String(n)] as const)
		await engine.store.commit(
			'k',
			keys.map((key) => ({ key, value: `${round} `.repeat(100 + 40 * round) })),
		)
		copyFileSync(join(path, 'data.mdb'), file)
		stages.push(readFileSync(file))
	}
	return stages
}

/** Checks a file that is replaced right before the nth read. Also returns the number of reads. */
function checkWhile(before: Buffer, after: Buffer, read: number): ReturnType<typeof checkFile> & { reads: number } {
	const { readSync } = fs
	let reads = 0
	writeFileSync(file, before)
	fs.readSync = ((...args: Parameters<typeof readSync>) => {
		if (++reads === read) writeFileSync(file, after)
		return readSync(...args)
	}) as typeof readSync
	syncBuiltinESMExports()
	try {
		return { ...checkFile(file, everything), reads }
	} finally {
		fs.readSync = readSync
		syncBuiltinESMExports()
	}
}

void t.test('a commit at any moment of the check is not reported as damage', async (t) => {
	const stages = await makeStages()
	const [before, next, after] = [stages[2], stages[3], stages[7]] as [Buffer, Buffer, Buffer]
	t.ok(after.length > before.length, 'the file grows')
	const { reads } = checkWhile(before, before, 1)
	let uncertain = 0
	for (let read = 1; read <= reads; read++) {
		const one = checkWhile(before, next, read)
		t.equal(one.damage, null, `one commit before read ${read} of ${reads}`)
		const several = checkWhile(before, after, read)
		if (several.damage === null) continue
		uncertain++
		t.notOk(several.settled, `several commits before read ${read}: ${several.damage}`)
	}
	t.ok(uncertain > 0, `at ${uncertain} of ${reads} moments the check read pages of a later state`)
	t.equal(checkWhile(before, after, 1).damage, null, 'the file grew after its size was read')
	t.equal(checkWhile(before, after, 2).damage, null, 'commits between the reads of the two meta pages')
})
