import {
	chmodSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	rmSync,
	statSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Fault, isFault, messageOf } from '../core/errors.ts'
import { isFullDisk } from '../core/util/full-disk.ts'
import { replaceFile } from '../core/util/replace-file.ts'
import { configFile } from './home.ts'

export interface Preparation {
	/** True if this start wrote gateway.yaml. */
	first: boolean
	/** Warnings for the operator: modes that were too open, files that could not be written. */
	notes: string[]
}

export const homeFolders = ['config', 'data', 'plugins', 'skills', 'keys', 'run']

/** `npm run docs` generates both. Generating them at each start would take 15 ms. */
const ownExample = new URL('./gateway.example.yaml', import.meta.url)
const ownSchema = new URL('./gateway.schema.json', import.meta.url)

/** Entries of keys/ that are checked; it contains a handful. */
const maxKeys = 1000

/**
 * Prepares a home folder: creates its folders (0700), a commented gateway.yaml if there is none (0600, never rewritten) and its
 * JSON Schema (rewritten if it differs), and closes keys/ to others. Takes about 2 ms. Throws `config_invalid` if a folder or the
 * file cannot be created.
 */
export function prepareHome(home: string): Preparation {
	const notes: string[] = []
	try {
		for (const path of [home, ...homeFolders.map((name) => join(home, name))]) {
			const problem = noFolder(path)
			if (problem !== null) throw new Fault('config_invalid', `${path} ${problem.what}; ${problem.fix}`)
			mkdirSync(path, { recursive: true, mode: 0o700 })
		}
		const first = writeExample(configFile(home))
		// The folder may be mounted read-only, and only editors need the schema.
		try {
			writeSchema(join(home, 'config', 'gateway.schema.json'))
		} catch (error) {
			notes.push(`the schema for editors could not be written: ${messageOf(error)}`)
		}
		closeKeys(join(home, 'keys'), notes)
		return { first, notes }
	} catch (error) {
		if (isFault(error)) throw error
		const fix = isFullDisk(error)
			? 'free some space on its disk'
			: 'set SVC_HOME to a folder that this user may write to'
		const message = `the home folder ${home} cannot be prepared (${messageOf(error)}); ${fix}`
		throw new Fault('config_invalid', message, { cause: error })
	}
}

/** Why the path cannot be used as a folder; null if it is a folder or does not exist. */
export function noFolder(path: string): { what: string; fix: string } | null {
	const found = lstatSync(path, { throwIfNoEntry: false })
	if (found?.isSymbolicLink() && !existsSync(path))
		return {
			what: `is a link to ${readlinkSync(path)}, which does not exist`,
			fix: 'mount the disk that it leads to, or make the folder',
		}
	if (!found || statSync(path).isDirectory()) return null
	return { what: 'is not a folder', fix: 'move it away; the next start makes a folder in its place' }
}

function writeExample(file: string): boolean {
	if (existsSync(file)) return false
	try {
		// wx: must not overwrite a file that was created meanwhile, or write through a dangling link.
		// flush: after a power failure, an empty file would look like the operator's.
		writeFileSync(file, readFileSync(ownExample), { flag: 'wx', mode: 0o600, flush: true })
		return true
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
		// On a full disk the file is incomplete, and at the next start it would look like the operator's.
		rmSync(file, { force: true })
		throw error
	}
}

function writeSchema(file: string): void {
	const schema = readFileSync(ownSchema)
	if (!existsSync(file) || !readFileSync(file).equals(schema)) replaceFile(file, schema)
}

/** Other users of the machine must not read keys: corrects their modes, and notes each correction. */
function closeKeys(folder: string, notes: string[]): void {
	// Windows has no such modes.
	if (process.platform === 'win32') return
	close(folder, statSync(folder).mode, 0o700, notes)
	for (const name of readdirSync(folder).slice(0, maxKeys)) {
		const path = join(folder, name)
		const found = lstatSync(path)
		if (found.isFile()) close(path, found.mode, 0o600, notes)
		else if (found.isDirectory()) close(path, found.mode, 0o700, notes)
	}
}

function close(path: string, mode: number, wanted: number, notes: string[]): void {
	if ((mode & 0o077) === 0) return
	const [was, is] = [mode & 0o777, wanted].map((bits) => bits.toString(8).padStart(4, '0'))
	try {
		chmodSync(path, wanted)
		notes.push(`${path} was open to other users (${was}) and is now ${is}; replace the keys if others could read them`)
	} catch (error) {
		notes.push(
			`${path} is open to other users (${was}) and cannot be closed: ${messageOf(error)}; its owner must set ${is}`,
		)
	}
}
