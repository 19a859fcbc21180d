import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CliError } from '../contract.ts'
import type { Cli } from '../contract.ts'

/**
 * The folder of a plugin that the user specifies by its path, or by its name in `plugins/` of the home. Default: the working
 * directory. Throws a `CliError` (not_found) if there is no such folder.
 */
export function folderOf({ home, cwd }: Pick<Cli, 'home' | 'cwd'>, plugin = '.'): string {
	const isName = /^[A-Za-z0-9][\w-]*$/.test(plugin)
	const places = [...(isName ? [join(home, 'plugins', plugin)] : []), resolve(cwd, plugin)]
	const found = places.find((place) => statSync(place, { throwIfNoEntry: false })?.isDirectory())
	if (found === undefined) throw new CliError('not_found', `there is no folder ${places.join(', and no folder ')}`)
	return found
}
