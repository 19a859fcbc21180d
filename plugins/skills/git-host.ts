/** Converts the address of a page of a Git host, which people copy, to the address of the repository's archive. */

export interface ArchiveAddress {
	url: string
	/** The folder in the archive. */
	path: string
}

const NAME = '[A-Za-z0-9._-]+'
const REF = '([^/]+)'
const PATH = '(?:/(.*))?'

/**
 * The archive of the page's revision, and the folder that the page shows; for a page of a SKILL.md, its folder. Undefined for any
 * other address, which is downloaded itself. The name of a branch is cut at a slash: for such a branch, people need the address of
 * its archive.
 */
export function archiveAddressOf(address: string): ArchiveAddress | undefined {
	const url = URL.parse(address)
	if (!url || url.search !== '') return undefined
	const { origin, host } = url
	const path = url.pathname.replace(/\/+$/, '')
	const match = (pattern: string): string[] | undefined => new RegExp(`^${pattern}$`).exec(path)?.slice(1)
	const found = (archive: string, folder: string | undefined): ArchiveAddress | undefined => {
		const shown = decoded(folder ?? '')
		return shown === undefined ? undefined : { url: `${origin}${archive}`, path: shown }
	}
	/** A page of a single file belongs to a skill only if the file is a SKILL.md. */
	const isSkill = (kind: string | undefined, folder: string | undefined): boolean =>
		kind !== 'blob' || /(?:^|\/)skill\.md$/i.test(folder ?? '')

	if (host === 'github.com') {
		const [repository, kind, ref = 'HEAD', folder] =
			match(`(/${NAME}/${NAME}?)(?:\\.git)?(?:/(tree|blob)/${REF}${PATH})?`) ?? []
		if (repository === undefined || !isSkill(kind, folder)) return undefined
		return found(`${repository.replace(/\.git$/, '')}/archive/${ref}.tar.gz`, folder)
	}
	const [project, kind, ref, folder] = match(`((?:/${NAME}){2,})/-/(tree|blob)/${REF}${PATH}`) ?? []
	if (project !== undefined && ref !== undefined) {
		const name = project.slice(project.lastIndexOf('/') + 1)
		return isSkill(kind, folder) ? found(`${project}/-/archive/${ref}/${name}-${ref}.tar.gz`, folder) : undefined
	}
	if (host === 'bitbucket.org') {
		const [repository, commit, shown] = match(`(/${NAME}/${NAME})/src/${REF}${PATH}`) ?? []
		return repository === undefined ? undefined : found(`${repository}/get/${commit}.tar.gz`, shown)
	}
	const [repository, revision, shown] = match(`(/${NAME}/${NAME})/src/(?:branch|tag|commit)/${REF}${PATH}`) ?? []
	return repository === undefined ? undefined : found(`${repository}/archive/${revision}.tar.gz`, shown)
}

function decoded(path: string): string | undefined {
	try {
		return decodeURIComponent(path)
	} catch {
		return undefined
	}
}
