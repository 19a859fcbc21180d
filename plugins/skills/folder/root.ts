/** Finds the folder of the skill in an archive or a list of files: the one with the SKILL.md. */
import { Fault } from '../../../core/errors.ts'
import { someOf } from '../../../core/util/some-of.ts'
import { folderOf, inFolder, isDocument } from './paths.ts'

/** Limit of skills that an error message names. */
const NAMED_LIMIT = 50
const DEFINED = 'a skill is a folder with a SKILL.md'

/**
 * The folder of the skill; empty for the top level. `wanted`: its path, with or without the top folder that the archive of a
 * repository has. Undefined: there must be exactly one skill. A SKILL.md below the folder of another skill belongs to that skill.
 *
 * Throws `skill_invalid` if there is no skill, and `skill_ambiguous` if there are several, with their paths as `errors`.
 */
export function rootOf(paths: readonly string[], wanted: string | undefined): string {
	const around = topFolder(paths)
	const folders = [...new Set(paths.filter(isDocument).map(folderOf))]
	if (wanted !== undefined) {
		const root = [wanted, around && wanted !== '' ? `${around}/${wanted}` : around].find((one) => folders.includes(one))
		if (root !== undefined) return root
		const found = folders.length === 0 ? `; ${DEFINED}` : `, only in: ${listed(folders, around)}`
		throw new Fault('skill_invalid', `there is no SKILL.md in "${wanted}"${found}`)
	}
	const outermost = outermostOf(folders)
	const [root] = outermost
	if (root === undefined) throw new Fault('skill_invalid', `there is no SKILL.md; ${DEFINED}`)
	if (outermost.length === 1) return root
	const shown = outermost.map((folder) => inFolder(around, folder) ?? folder).toSorted()
	throw new Fault(
		'skill_ambiguous',
		`there are ${shown.length} skills here; name one with path: ${listed(outermost, around)}`,
		{
			errors: shown.slice(0, FOLDERS_LIMIT).map((path) => ({ path, message: 'contains a skill' })),
		},
	)
}

/** Limit of the folders in `errors`. */
const FOLDERS_LIMIT = 500

/** The folders that are not in another one of them. */
function outermostOf(folders: readonly string[]): string[] {
	const found: string[] = []
	// With a slash at the end, a folder is sorted directly before all folders in it.
	for (const folder of folders.map((one) => (one === '' ? '' : `${one}/`)).toSorted()) {
		const around = found.at(-1)
		if (around === undefined || !folder.startsWith(around)) found.push(folder)
	}
	return found.map((folder) => folder.slice(0, -1))
}

function listed(folders: readonly string[], around: string): string {
	const names = folders.map((folder) => inFolder(around, folder) ?? (folder === '' ? '.' : folder)).toSorted()
	return someOf(names, NAMED_LIMIT)
}

/** The one top folder that contains everything; empty if there is none. */
function topFolder(paths: readonly string[]): string {
	const first = paths[0]?.split('/', 1)[0] ?? ''
	return first !== '' && paths.every((path) => inFolder(first, path) !== undefined) ? first : ''
}
