import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Fault, messageOf } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { dataFile } from '../store/lmdb/tables.ts'
import { checkFile } from './check-file.ts'
import type { FileFinding } from './check-file.ts'

const wholeBytes = 64 * 1024 * 1024
/** A complete check may take longer on a slow disk than the check of a part of a large file. */
const wholeWithinMs = 10_000
const shareWithinMs = 500

/**
 * Throws `store_damaged` if the folder's data file is damaged, `unavailable` if it cannot be read. Must be called
 * before LMDB opens the file: a damaged one would end the process by a signal. A file of 64 MiB takes about 0.3 s.
 */
export function checkFolder(folder: string, log?: Logger): void {
	const path = join(folder, dataFile)
	let finding: FileFinding
	try {
		const size = statSync(path, { throwIfNoEntry: false })?.size
		// An empty file is checked too: LMDB would treat it as a new one, and the loss of data would go unnoticed.
		if (size === undefined) return
		finding = checkFile(path, { wholeBytes, withinMs: size <= wholeBytes ? wholeWithinMs : shareWithinMs })
	} catch (error) {
		throw new Fault('unavailable', `the data file ${path} cannot be read: ${messageOf(error)}`, { cause: error })
	}
	if (finding.damage !== null) {
		throw new Fault(
			'store_damaged',
			`the data file ${path} is damaged: ${finding.damage}. Restore a backup in its place, ` +
				`or move the folder ${folder} away to start with an empty one`,
		)
	}
	log?.debug(finding, 'the data file was checked')
}
