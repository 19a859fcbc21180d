import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Fault, messageOf } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import { checkFile } from './check.ts'
import type { CheckLimits, Finding } from './check.ts'
import { dataFile } from './tables.ts'

const wholeBytes = 64 * 1024 * 1024
/** A file that is looked at as a whole may take longer on a slow disk than a mere share of a large one. */
const wholeWithinMs = 10_000
const shareWithinMs = 500
/** What is smaller takes some 30 ms at most, less than a thread needs to begin. */
const ownThreadFrom = 4 * 1024 * 1024

/**
 * Throws `store_damaged` where the folder's data file is damaged, `unavailable` where it cannot be read. LMDB has not
 * touched the file yet: a damaged one would end the process by a signal.
 */
export async function checkFolder(folder: string, log?: Logger): Promise<void> {
	const path = join(folder, dataFile)
	const size = statSync(path, { throwIfNoEntry: false })?.size
	// An empty file is looked at too: LMDB would take it for a new one, and what it held would be lost without a word.
	if (size === undefined) return
	const finding = await look(path, size)
	if (finding.damage !== null) {
		throw new Fault(
			'store_damaged',
			`the data file ${path} is damaged: ${finding.damage}. Restore a backup in its place, ` +
				`or move the folder ${folder} away to begin with an empty one`,
		)
	}
	log?.debug(finding, 'the data file has been looked over')
}

async function look(path: string, size: number): Promise<Finding> {
	const limits: CheckLimits = { wholeBytes, withinMs: size <= wholeBytes ? wholeWithinMs : shareWithinMs }
	try {
		if (size < ownThreadFrom) return checkFile(path, limits)
		const worker = new Worker(new URL('./check-worker.ts', import.meta.url), { workerData: { path, limits } })
		const [finding] = (await once(worker, 'message')) as [Finding]
		return finding
	} catch (error) {
		throw new Fault('unavailable', `the data file ${path} cannot be read: ${messageOf(error)}`, { cause: error })
	}
}
