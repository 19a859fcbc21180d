/** Reads text for a command from a file or from standard input. */
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { allBytes } from '../util/all-bytes.ts'
import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'

/** More than any request may have, and the limit of standard input. */
const LIMIT_BYTES = 2 * 1024 * 1024

/** `name`: of a file, or `-` for standard input. Throws a `CliError` if it does not exist, is too large, or is not UTF-8. */
export async function textInput(cli: Pick<Cli, 'cwd' | 'ask'>, name: string): Promise<string> {
	const bytes = name === '-' ? await cli.ask.input() : await readFile(resolve(cli.cwd, name), name)
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch (error) {
		throw new CliError('usage', `${name === '-' ? 'standard input' : name} is not text in UTF-8`, { cause: error })
	}
}

/** The text of an argument such as `[prompt...]`: its words, or for a single `-` all of standard input. Throws as `textInput`. */
export async function textOf(cli: Pick<Cli, 'cwd' | 'ask'>, words: readonly string[]): Promise<string> {
	return words.length === 1 && words[0] === '-' ? textInput(cli, '-') : words.join(' ')
}

/** Reads at most the limit, also from something that is not a regular file. */
async function readFile(path: string, name: string): Promise<Buffer> {
	try {
		await using file = await open(path, 'r')
		const tooLarge = (): CliError => new CliError('usage', `${name} has more than ${LIMIT_BYTES / 1024 / 1024} MiB`)
		return await allBytes(file.createReadStream(), LIMIT_BYTES, tooLarge)
	} catch (error) {
		throw error instanceof CliError ? error : unreadable(name, error)
	}
}

/** The error for a file that cannot be read. */
export function unreadable(name: string, error: unknown): CliError {
	const { code } = error as NodeJS.ErrnoException
	const why = code === 'ENOENT' ? 'does not exist' : code === 'EISDIR' ? 'is a folder' : `cannot be read (${code})`
	return new CliError(code === 'ENOENT' ? 'not_found' : 'usage', `${name} ${why}`, { cause: error })
}
