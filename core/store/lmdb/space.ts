import { statfsSync } from 'node:fs'
import { Fault, messageOf } from '../../errors.ts'

/**
 * Keeps LMDB from ever reaching a full disk, which would corrupt the process's memory and crash it. Writes are refused while
 * less than `minFree` bytes would be left; deletions are accepted down to an eighth of that. Writes resume by themselves.
 *
 * There is no timer: a write or a query checks the disk if the last check is older than 200 ms, or if much was written
 * since. Accepted writes that are not on the disk yet count as used space.
 */
export interface Space {
	/** Reserves space for a commit, or throws `storage_full`. */
	admit(size: CommitSize): void
	/** The commit is durable, or has failed. */
	done(size: CommitSize): void
	/** Whether there is room for `bytes` of optional data. */
	hasRoom(bytes: number): boolean
	/** Null while there is space; otherwise why writes are refused. */
	trouble(): string | null
}

export interface CommitSize {
	/** Of its keys and values. */
	bytes: number
	/** The most disk space that it may use. */
	cost: number
	/** False if it only deletes. */
	growing: boolean
}

/** A check costs 3 µs. */
const maxAgeMs = 200
/** LMDB copies every page that it changes. A small write uses about two pages that no earlier commit has freed. */
export const bytesPerWrite = 8192

/** `path`: of the data files. `minFree`: in bytes. */
export function watchSpace(path: string, minFree: number, freeBytes: () => number = () => freeBytesOf(path)): Space {
	let free = 0
	let failure: string | null = null
	let checkedAt = Number.NEGATIVE_INFINITY
	/** The cost of accepted commits that are not finished, and of those finished since the last check. */
	let pending = 0
	let finished = 0

	const check = (): void => {
		checkedAt = performance.now()
		finished = 0
		try {
			free = freeBytes()
			failure = null
		} catch (error) {
			failure = `the free space of ${path} cannot be read: ${messageOf(error)}`
		}
	}
	const checkIfOld = (): void => {
		if (performance.now() - checkedAt > maxAgeMs) check()
	}
	const left = (): number => free - pending - finished
	const tooFull = (): string =>
		`only ${mebi(free)} MiB are free on the disk of ${path}, and ${mebi(minFree)} MiB must stay free: ` +
		'make room there, then writes resume without a restart'

	return {
		admit({ cost, growing }) {
			const floor = growing ? minFree : minFree / 8
			checkIfOld()
			if (finished > minFree / 8 || left() - cost < floor) check()
			if (failure) throw new Fault('unavailable', failure)
			if (left() - cost < floor) throw new Fault('storage_full', tooFull())
			pending += cost
		},
		done({ cost }) {
			pending -= cost
			finished += cost
		},
		hasRoom(bytes) {
			checkIfOld()
			return failure === null && left() - bytes >= 2 * minFree
		},
		trouble() {
			checkIfOld()
			return failure ?? (left() < minFree ? tooFull() : null)
		},
	}
}

function mebi(bytes: number): number {
	return Math.floor(bytes / 1024 ** 2)
}

/** The free bytes on the disk of a folder, for this user. Throws if the file system does not report them. */
export function freeBytesOf(path: string): number {
	const { bavail, bsize } = statfsSync(path)
	return bavail * bsize
}
