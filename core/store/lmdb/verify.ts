import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Fault, messageOf } from '../../errors.ts'
import type { Logger } from '../../log/log.ts'
import { checkFile } from './check.ts'
import type { CheckLimits, Finding } from './check.ts'
import { dataFile } from './tables.ts'

const wholeBytes = 64 * 1024 * 1024
/** A file that is checked completely may take longer on a slow disk than a part of a large one. */
const wholeWithinMs = 10_000
const shareWithinMs = 500
/** Smaller files take 30 ms at most, less than a thread needs to start. */
const ownThreadFrom = 4 * 1024 * 1024

/**
 * Throws `store_damaged` if the folder's data file is damaged, `unavailable` if it cannot be read. Must be called
 * before LMDB opens the file: a damaged one would end the process by a signal.
 */
export async function checkFolder(folder: string, log?: Logger): Promise<void> {
	const path = join(folder, dataFile)
	const size = statSync(path, { throwIfNoEntry: false })?.size
	// An empty file is checked too: LMDB would treat it as a new one, and the loss of data would go unnoticed.
	if (size === undefined) return
	const finding = await check(path, size)
	if (finding.damage !== null) {
		throw new Fault(
			'store_damaged',
			`the data file ${path} is damaged: ${finding.damage}. Restore a backup in its place, ` +
				`or move the folder ${folder} away to start with an empty one`,
		)
	}
	log?.debug(finding, 'the data file was checked')
}

async function check(path: string, size: number): Promise<Finding> {
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
