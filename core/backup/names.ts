/** Names of backups. A caller gives ids only, and an id is digits: it can never be a path. */
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

const prefix = 'svc-backup-'
const suffix = '.tar.gz'

export const idPattern = /^\d{8}T\d{9}Z$/

/** The UTC time in milliseconds, such as `20300131T120000123Z`. */
export function idOf(time: Date): string {
	return time.toISOString().replaceAll(/[-:.]/g, '')
}

export function fileOf(folder: string, id: string): string {
	if (!idPattern.test(id)) throw new TypeError('this is no id of a backup')
	return join(folder, `${prefix}${id}${suffix}`)
}

/** Undefined for a file that is no backup. */
export function idOfFile(name: string): string | undefined {
	if (!name.startsWith(prefix) || !name.endsWith(suffix)) return undefined
	const id = name.slice(prefix.length, -suffix.length)
	return idPattern.test(id) ? id : undefined
}

/** The same for a home as long as it stays where it is. */
export function originOf(home: string): string {
	return createHash('sha256')
		.update(`${hostname()}\0${realpathSync(home)}`)
		.digest('hex')
		.slice(0, 16)
}

/** Where a home's backup grows until it is whole; only one at a time does. */
export function partialOf(folder: string, origin: string): string {
	return join(folder, `.partial-${origin}`)
}
