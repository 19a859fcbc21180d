import {
	closeSync,
	fchmodSync,
	fsyncSync,
	openSync,
	readFileSync,
	realpathSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from 'node:fs'
import { Fault, isFault, messageOf } from '../core/errors.ts'
import type { FieldError } from '../core/errors.ts'
import { prepareHome } from './first-start.ts'
import { configFile } from './home.ts'
import type { Environment } from './home.ts'
import { readConfig } from './read.ts'
import type { Config } from './types.ts'

export interface ChangeRequest {
	home: string
	env: Environment
	/** Makes the new text of gateway.yaml. */
	change: (text: string) => string
	/** Looks at what the schema leaves alone; throws `config_invalid`. */
	check?: (config: Config) => Promise<void>
}

export interface Change {
	file: string
	/** False where the text already was what it should be. */
	changed: boolean
	/** What was wrong before, and still is; a running gateway does not take such a file. */
	problems: FieldError[]
}

/**
 * Changes gateway.yaml, which is made first where there is none. The new text is checked before it takes the old one's
 * place by rename, with its mode; a link stays a link. Throws `config_invalid` where the change makes something wrong that
 * was not wrong before, and `conflict` where somebody else changed the file meanwhile.
 */
export async function changeConfig({ home, env, change, check }: ChangeRequest): Promise<Change> {
	prepareHome(home)
	const file = realpathSync(configFile(home))
	const before = readFileSync(file, 'utf8')
	const text = change(before)
	const problemsIn = async (one: string): Promise<Fault | undefined> => {
		try {
			const config = readConfig({ home, env, text: one })
			await check?.(config)
			return undefined
		} catch (error) {
			if (!isFault(error)) throw error
			return error
		}
	}
	const problems = newProblems(await problemsIn(before), await problemsIn(text))
	if (text === before) return { file, changed: false, problems }
	replace(file, text, () => {
		if (readFileSync(file, 'utf8') !== before)
			throw new Fault('conflict', `${file} was changed by somebody else meanwhile; try again`)
	})
	return { file, changed: true, problems }
}

/** Throws what is wrong with the new text, unless all of it was wrong before; answers with that then. */
function newProblems(before: Fault | undefined, now: Fault | undefined): FieldError[] {
	if (!now) return []
	const known = new Set((before?.errors ?? []).map(({ path, message }) => `${path} ${message}`))
	const problems = now.errors ?? []
	if (problems.length === 0 || problems.some(({ path, message }) => !known.has(`${path} ${message}`))) throw now
	return problems
}

/** Durable, and whole to every reader. */
function replace(file: string, text: string, last: () => void): void {
	const temporary = `${file}.${process.pid}.tmp`
	try {
		const handle = openSync(temporary, 'wx', 0o600)
		try {
			fchmodSync(handle, statSync(file).mode & 0o777)
			writeFileSync(handle, text)
			fsyncSync(handle)
		} finally {
			closeSync(handle)
		}
		last()
		renameSync(temporary, file)
	} catch (error) {
		if (isFault(error)) throw error
		throw new Fault('conflict', `${file} cannot be written: ${messageOf(error)}`, { cause: error })
	} finally {
		rmSync(temporary, { force: true })
	}
}
