/** Names of backups. Callers name a backup by its id, whose form excludes paths. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { replaceFile } from '../util/replace-file.ts'

const prefix = 'svc-backup-'
const suffix = '.tar.gz'

export const idPattern = /^\d{8}T\d{9}Z$/

/** The UTC time in milliseconds, such as `20300131T120000123Z`. */
export function idOf(time: Date): string {
	return time.toISOString().replaceAll(/[-:.]/g, '')
}

/** The path of a backup. Throws a `TypeError` for an invalid id, which might lead out of the folder. */
export function fileOf(folder: string, id: string): string {
	if (!idPattern.test(id)) throw new TypeError('this is not the id of a backup')
	return join(folder, `${prefix}${id}${suffix}`)
}

/** Undefined for a file that is not a backup. */
export function idOfFile(name: string): string | undefined {
	if (!name.startsWith(prefix) || !name.endsWith(suffix)) return undefined
	const id = name.slice(prefix.length, -suffix.length)
	return idPattern.test(id) ? id : undefined
}

/**
 * Identifies a home as long as it is not moved. The random value is stored in run/, which no backup contains. The name of the
 * machine is not used, since each new container has another one.
 */
export function originOf(home: string): string {
	const file = join(home, 'run', 'backup-origin')
	const random = readRandom(file) ?? createRandom(file)
	return createHash('sha256')
		.update(`${random}\0${realpathSync(home)}`)
		.digest('hex')
		.slice(0, 16)
}

function readRandom(file: string): string | undefined {
	try {
		const text = readFileSync(file, 'utf8')
		return /^[0-9a-f]{32}$/.test(text) ? text : undefined
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
		throw error
	}
}

function createRandom(file: string): string {
	const random = randomBytes(16).toString('hex')
	mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
	replaceFile(file, random, { flush: true })
	return random
}

/** Where a home's backup is written until it is complete; only one at a time. */
export function partialOf(folder: string, origin: string): string {
	return join(folder, `.partial-${origin}`)
}
