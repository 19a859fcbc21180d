/**
 * A folder in memory for the homes of tests. On a disk, a gateway spends more than half of its start and stop waiting for writes, and
 * the tests of a batch run one after another.
 */
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/** A file system in memory, on Linux. */
const IN_MEMORY = '/dev/shm'
/** Several times the space that all batches use at any time. */
const ROOM_BYTES = 4 * 1024 ** 3

export interface MemoryFolder extends Disposable {
	path: string
}

/** Undefined if there is no such folder or too little space, or if TMPDIR is set. The folder is removed when it is disposed of. */
export function memoryFolder(): MemoryFolder | undefined {
	if (process.env.TMPDIR !== undefined || !hasRoom()) return undefined
	const path = mkdtempSync(join(IN_MEMORY, 'svc-tests-'))
	return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) }
}

function hasRoom(): boolean {
	try {
		const { bavail, bsize } = statfsSync(IN_MEMORY)
		// The limit of the machine, or of the container.
		return Math.min(bavail * bsize, process.availableMemory()) > ROOM_BYTES
	} catch {
		return false // another system
	}
}
