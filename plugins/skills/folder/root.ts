/** Where in an archive, or in a list of files, the skill is: the folder with its SKILL.md. */
import { Fault } from '../../../core/errors.ts'
import { someOf } from '../../../core/util/some-of.ts'
import { folderOf, inFolder, isDocument } from './paths.ts'

/** Skills that an error names. */
const NAMED_LIMIT = 50
const DEFINED = 'a skill is a folder with a SKILL.md'

/**
 * The folder of the skill; empty for the top. `wanted`: its path, with or without the one folder that an archive of a
 * repository has around everything; absent: there must be exactly one skill. A SKILL.md below that of another skill belongs
 * to that one.
 *
 * Throws `skill_invalid` if there is none, `skill_ambiguous` if there are several, with their paths as `errors`.
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
			errors: shown.slice(0, FOLDERS_LIMIT).map((path) => ({ path, message: 'holds a skill' })),
		},
	)
}

/** Folders in the `errors` of an answer. */
const FOLDERS_LIMIT = 500

/** Those that are in no other one. */
function outermostOf(folders: readonly string[]): string[] {
	const found: string[] = []
	// Sorted by these, a folder comes right before all that it contains.
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

/** The folder around everything; empty if there is none. */
function topFolder(paths: readonly string[]): string {
	const first = paths[0]?.split('/', 1)[0] ?? ''
	return first !== '' && paths.every((path) => inFolder(first, path) !== undefined) ? first : ''
}
