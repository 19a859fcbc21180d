import { statfsSync } from 'node:fs'
import { Fault, messageOf } from '../../errors.ts'

/**
 * Keeps LMDB from ever meeting a full disk: it would corrupt the process's memory and end it. Writes are refused while
 * less than `minFree` bytes would be left; what only deletes goes on, down to an eighth of that. Lifts by itself.
 *
 * There is no timer: the disk is looked at by whoever writes or asks, when the last look is some time ago or when much
 * was written since. What is accepted but not yet on the disk counts as taken.
 */
export interface Space {
	/** Takes room for a commit, or throws `storage_full`. */
	admit(size: CommitSize): void
	/** The commit is on the disk, or given up. */
	done(size: CommitSize): void
	/** Null while there is room; otherwise why writes are refused. */
	trouble(): string | null
}

export interface CommitSize {
	bytes: number
	writes: number
	/** False where it only deletes. */
	growing: boolean
}

/** A look costs 3 µs. */
const maxAgeMs = 200
/** LMDB copies every page that it changes; of a small write that is about two pages that no earlier commit has freed. */
const pagesPerWrite = 8192

export function watchSpace(path: string, minFree: number, freeBytes: () => number = () => freeBytesOf(path)): Space {
	let free = 0
	let failure: string | null = null
	let lookedAt = Number.NEGATIVE_INFINITY
	/** Accepted and not finished; finished since the last look. */
	let pending = 0
	let since = 0

	const look = (): void => {
		lookedAt = performance.now()
		since = 0
		try {
			free = freeBytes()
			failure = null
		} catch (error) {
			failure = `the free space of ${path} cannot be read: ${messageOf(error)}`
		}
	}
	const lookIfOld = (): void => {
		if (performance.now() - lookedAt > maxAgeMs) look()
	}
	const left = (): number => free - pending - since
	const tooFull = (): string =>
		`only ${mebi(free)} MiB are free on the disk of ${path}, and ${mebi(minFree)} MiB are kept back: ` +
		'make room there; writing goes on by itself then'

	return {
		admit(size) {
			const cost = costOf(size)
			const floor = size.growing ? minFree : minFree / 8
			lookIfOld()
			if (since > minFree / 8 || left() - cost < floor) look()
			if (failure) throw new Fault('unavailable', failure)
			if (left() - cost < floor) throw new Fault('storage_full', tooFull())
			pending += cost
		},
		done(size) {
			const cost = costOf(size)
			pending -= cost
			since += cost
		},
		trouble() {
			lookIfOld()
			return failure ?? (left() < minFree ? tooFull() : null)
		},
	}
}

function costOf({ bytes, writes }: CommitSize): number {
	return bytes + writes * pagesPerWrite
}

function mebi(bytes: number): number {
	return Math.floor(bytes / 1024 ** 2)
}

/** On the disk of a folder, for this user. Throws where the file system does not say. */
export function freeBytesOf(path: string): number {
	const { bavail, bsize } = statfsSync(path)
	return bavail * bsize
}
