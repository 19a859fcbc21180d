/**
 * A folder in memory for the homes of tests. On a disk, a gateway that starts or stops waits for it for more than half of the time, and
 * the tests of a batch run one after another.
 */
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/** A file system in memory, on Linux. */
const IN_MEMORY = '/dev/shm'
/** Several times what all batches have there at any time. */
const ROOM_BYTES = 4 * 1024 ** 3

export interface MemoryFolder extends Disposable {
	path: string
}

/** Undefined where there is little room or none, and where TMPDIR says where to write. It is removed at the end. */
export function memoryFolder(): MemoryFolder | undefined {
	if (process.env.TMPDIR !== undefined || !hasRoom()) return undefined
	const path = mkdtempSync(join(IN_MEMORY, 'svc-tests-'))
	return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) }
}

function hasRoom(): boolean {
	try {
		const { bavail, bsize } = statfsSync(IN_MEMORY)
		// Of the machine, or of the container that this runs in.
		return Math.min(bavail * bsize, process.availableMemory()) > ROOM_BYTES
	} catch {
		return false // another system
	}
}
