import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readConfig } from '../host/config.ts'
import { fileOf, idOfFile, idPattern } from '../backup/names.ts'
import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'

/**
 * The file of a backup that a user specifies: an existing file, else an id or a file name in the backup folder of the home's
 * settings. Throws `not_found` for anything else.
 */
export function fileGiven(cli: Cli, given: string): string {
	const id = idPattern.test(given) ? given : idOfFile(given)
	const file = resolve(cli.cwd, given)
	if (existsSync(file)) return file
	if (id !== undefined) return fileOf(folderOf(cli), id)
	throw new CliError('not_found', `there is no file ${file}, and "${given}" is not the id of a backup: svc backup list`)
}

/** The backup folder in the settings of the home. Throws `config_invalid`. */
export function folderOf({ env, home }: Pick<Cli, 'env' | 'home'>): string {
	return readConfig({ home, env }).backups.folder
}
