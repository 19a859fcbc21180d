/** Normalizes and checks the paths of a skill's files. */
import { Fault } from '../../../core/errors.ts'
import { visible } from '../invisible.ts'

/** Limit of characters of any path in an archive, before the skill's folder is known. */
const NAME_LIMIT = 1000
/** Limits in bytes of a path, and of one of its parts. */
const PATH_LIMIT = 400
const PART_LIMIT = 255
const DEPTH_LIMIT = 16
/** Limit of characters of a path in an error. */
const SHOWN_LIMIT = 200

/** Files of version control and of file managers, which are never part of a skill. */
const CLUTTER = /^(?:\.git|\.svn|\.hg|__MACOSX|\.DS_Store|\._.*|Thumbs\.db|desktop\.ini)$/i

/**
 * The normalized path: relative, with single slashes, in Unicode's composed form (NFC). Throws `skill_invalid` if the path leads
 * out of its folder or is too long.
 */
export function pathOf(name: string): string {
	if (name.length > NAME_LIMIT) throw wrong(name, `is longer than ${NAME_LIMIT} characters; shorten it`)
	if (/^(?:\/|[A-Za-z]:[/\\])/.test(name)) throw wrong(name, 'is absolute; paths must be relative to the folder')
	const parts = name.split('/').filter((part) => part !== '' && part !== '.')
	if (parts.length === 0) throw wrong(name, 'names no file')
	if (parts.some((part) => part.split('\\').includes('..'))) throw wrong(name, 'leads out of its folder; remove ..')
	return parts.join('/').normalize('NFC')
}

/**
 * Throws `skill_invalid` for a path that is too long or has invisible characters, for two paths that are the same on some file
 * system, and for a path that is both a file and a folder. A reader of such paths could see a different file than the gateway.
 */
export function checkPaths(paths: readonly string[]): void {
	for (const path of paths) checkPath(path)
	const files = new Map<string, string>()
	for (const path of paths) {
		const key = keyOf(path)
		const other = files.get(key)
		if (other === path) throw new Fault('skill_invalid', `the path ${path} occurs twice; keep one`)
		if (other !== undefined)
			throw new Fault('skill_invalid', `the paths ${other} and ${path} are the same on some systems; rename one`)
		files.set(key, path)
	}
	for (const path of paths) {
		for (let folder = folderOf(path); folder !== ''; folder = folderOf(folder)) {
			const file = files.get(keyOf(folder))
			if (file !== undefined) throw new Fault('skill_invalid', `${file} is a file and a folder; rename one`)
		}
	}
}

function checkPath(path: string): void {
	const parts = path.split('/')
	if (!path.isWellFormed()) throw wrong(path, 'is not Unicode text; rename the file')
	if (path.includes('\\')) throw wrong(path, 'has a backslash; separate folders with /')
	if (/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(path))
		throw wrong(path, 'has invisible characters; rename the file')
	if (parts.length > DEPTH_LIMIT) throw wrong(path, `is more than ${DEPTH_LIMIT} folders deep; flatten it`)
	if (Buffer.byteLength(path) > PATH_LIMIT || parts.some((part) => Buffer.byteLength(part) > PART_LIMIT))
		throw wrong(path, `is longer than ${PATH_LIMIT} bytes, or a name in it than ${PART_LIMIT}; shorten it`)
}

function wrong(name: string, what: string): Fault {
	return new Fault('skill_invalid', `the path "${shownPath(name)}" ${what}`)
}

/** A path for people: shortened, with invisible characters escaped. */
export function shownPath(name: string): string {
	const text = visible(name.slice(0, SHOWN_LIMIT).toWellFormed(), true)
	return name.length > SHOWN_LIMIT ? `${text}…` : text
}

export function isClutter(path: string): boolean {
	return path.split('/').some((part) => CLUTTER.test(part))
}

export function isDocument(path: string): boolean {
	return /^skill\.md$/i.test(path.slice(path.lastIndexOf('/') + 1))
}

/** The folder of a path; empty for the top level. */
export function folderOf(path: string): string {
	return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

/** The path relative to a folder; undefined if it is outside. */
export function inFolder(folder: string, path: string): string | undefined {
	if (folder === '') return path
	return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined
}

function keyOf(path: string): string {
	return path.normalize('NFKC').toUpperCase().toLowerCase()
}
