import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readConfig } from '../host/config.ts'
import { fileOf, idOfFile, idPattern } from '../backup/names.ts'
import type { Cli } from './contract.ts'

/** The file of a backup that a user names: a file that is there, else an id or a bare name in the folder of the home's settings. */
export function fileGiven(cli: Cli, given: string): string {
	const id = idPattern.test(given) ? given : idOfFile(given)
	const file = resolve(cli.cwd, given)
	return id === undefined || existsSync(file) ? file : fileOf(folderOf(cli), id)
}

export function folderOf({ env, home }: Pick<Cli, 'env' | 'home'>): string {
	return readConfig({ home, env }).backups.folder
}
