/** Writes until the disk refuses, and prints the result as one JSON line. The parent limits the size of files. */
import { messageOf, isFault } from '../../../core/errors.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'

const engine = await openLmdb({ path: process.argv[2] as string, freeBytes: () => Number.MAX_SAFE_INTEGER })
const value = 'x'.repeat(3000)
const acknowledged: number[] = []
const codes = new Set<string>()
let next = 0

async function writeUntilRefused(): Promise<void> {
	for (;;) {
		const n = next++
		try {
			await engine.store.put(['k', String(n)], value)
			acknowledged.push(n)
		} catch (error) {
			codes.add(isFault(error) ? error.code : messageOf(error))
			return
		}
	}
}

await Promise.all(Array.from({ length: 10 }, writeUntilRefused))
// Later writes are refused at once, without another attempt to write to the disk.
for (let i = 0; i < 20; i++) await writeUntilRefused()
let readable = 0
for (const n of acknowledged) if ((await engine.store.get(['k', String(n)]))?.value === value) readable++
const lost = (await engine.store.get(['k', String(acknowledged.length + 5)])) !== undefined
const trouble = engine.trouble()
await engine[Symbol.asyncDispose]()
process.stdout.write(JSON.stringify({ acknowledged: acknowledged.length, readable, lost, codes: [...codes], trouble }))
