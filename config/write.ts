import { fchmodSync, fchownSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { Fault, isFault, messageOf } from '../core/errors.ts'
import type { FieldError } from '../core/errors.ts'
import { replaceFile } from '../core/util/replace-file.ts'
import type { Composition } from './composition.ts'
import { prepareHome } from './first-start.ts'
import { configFile } from './home.ts'
import type { Environment } from './home.ts'
import { readConfig } from './read.ts'
import { readText } from './read-text.ts'
import type { Config } from './types.ts'

export interface ChangeRequest {
	home: string
	env: Environment
	/** Returns the new text of gateway.yaml. */
	change: (text: string) => string
	/** Checks what the schema does not; throws `config_invalid`. */
	check?: (config: Config) => Promise<void>
}

export interface Change {
	file: string
	/** False if the text stays the same. */
	changed: boolean
	/** Problems that the file already had, and still has; a running gateway refuses such a file. */
	problems: FieldError[]
}

/**
 * Changes gateway.yaml, which is created first if it does not exist. Checks the new text, then replaces the file by rename, with
 * the same mode and owner; a link stays a link. Throws `config_invalid` if the change adds a problem, and `conflict` if the file
 * was changed meanwhile.
 */
export async function changeConfig(
	composition: Composition,
	{ home, env, change, check }: ChangeRequest,
): Promise<Change> {
	prepareHome(home)
	const file = realpathSync(configFile(home))
	// Other text than UTF-8 would be written back with replacement characters.
	readText(file)
	const before = readFileSync(file, 'utf8')
	const text = change(before)
	const problemsIn = async (one: string): Promise<Fault | undefined> => {
		try {
			const config = readConfig(composition, { home, env, text: one })
			await check?.(config)
			return undefined
		} catch (error) {
			if (!isFault(error, 'config_invalid')) throw error
			return error
		}
	}
	const problems = newProblems(await problemsIn(before), await problemsIn(text))
	if (text === before) return { file, changed: false, problems }
	replace(file, text, () => {
		if (readFileSync(file, 'utf8') !== before) throw new Fault('conflict', `${file} was changed meanwhile; try again`)
	})
	return { file, changed: true, problems }
}

/** Throws the error for the new text unless the old text had all of its problems; then returns them. */
function newProblems(before: Fault | undefined, now: Fault | undefined): FieldError[] {
	if (!now) return []
	const known = new Set((before?.errors ?? []).map(({ path, message }) => `${path} ${message}`))
	const problems = now.errors ?? []
	if (problems.length === 0 || problems.some(({ path, message }) => !known.has(`${path} ${message}`))) throw now
	return problems
}

/** Keeps the mode and the owner. `last`: called before the file is replaced. */
function replace(file: string, text: string, last: () => void): void {
	const ready = (descriptor: number): void => {
		const { mode, uid, gid } = statSync(file)
		// The gateway of another user could not read a file that belongs to root.
		if (process.getuid?.() === 0) fchownSync(descriptor, uid, gid)
		fchmodSync(descriptor, mode & 0o777)
		last()
	}
	try {
		replaceFile(file, text, { flush: true, ready })
	} catch (error) {
		if (isFault(error)) throw error
		throw new Fault('conflict', `${file} cannot be written: ${messageOf(error)}`, { cause: error })
	}
}
