/** Reads the folder of one skill from an archive or from single files. */
import { Fault } from '../../../core/errors.ts'
import { openSemaphore } from '../../../core/util/semaphore.ts'
import { DOCUMENT, FILES_LIMIT, FOLDER_LIMIT_BYTES } from './contract.ts'
import type { Archive, LeftOut, SkillFile, SkillFolder } from './contract.ts'
import { checkPaths, folderOf, inFolder, isClutter, isDocument, pathOf, shownPath } from './paths.ts'
import { rootOf } from './root.ts'
import { openTar } from './tar.ts'
import { openZip, tooLarge } from './zip.ts'

/** Limit of the bytes of an archive. */
export const ARCHIVE_LIMIT_BYTES = 32 * 1024 * 1024
/** Limits how many archives are unpacked at the same time. */
const places = openSemaphore(2)
const LEFT_OUT_LIMIT = 50

/** Content types of archives in requests and responses. */
export const archiveTypes: ReadonlySet<string> = new Set([
	'application/zip',
	'application/x-zip',
	'application/x-zip-compressed',
	'application/gzip',
	'application/x-gzip',
	'application/x-tar',
	'application/x-gtar',
	'application/x-tgz',
	'application/x-compressed-tar',
	'application/x-compressed',
])

/** The kind of an archive, by its first bytes: file names and content types are often wrong. */
export function archiveKind(bytes: Uint8Array): 'zip' | 'tar.gz' | undefined {
	const [a, b, c, d] = bytes
	if (a === 0x50 && b === 0x4b && ((c === 3 && d === 4) || (c === 5 && d === 6))) return 'zip'
	return a === 0x1f && b === 0x8b ? 'tar.gz' : undefined
}

/** `path`: the skill's folder in the archive; see `rootOf`. Throws `skill_invalid`, `skill_ambiguous`. */
export async function unpack(bytes: Buffer, path?: string): Promise<SkillFolder> {
	const kind = archiveKind(bytes)
	if (kind === undefined) throw new Fault('skill_invalid', 'this is not an archive; send a .zip or a .tar.gz')
	const release = await places.acquire()
	try {
		return await skillIn(kind === 'zip' ? openZip(bytes) : openTar(bytes), path)
	} finally {
		release()
	}
}

/** A skill from single files, with the same rules as for an archive. Throws as `unpack`. */
export function folderOfFiles(given: readonly SkillFile[], path?: string): SkillFolder {
	const files = given.map((file) => ({ ...file, path: pathOf(file.path) })).filter((file) => !isClutter(file.path))
	return complete(ownOf(files, rootFor(files, path)), [])
}

/** A skill that has only a document. */
export function folderOfDocument(bytes: Uint8Array): SkillFolder {
	return complete([{ path: DOCUMENT, bytes }], [])
}

async function skillIn(archive: Archive, path: string | undefined): Promise<SkillFolder> {
	const entries = (await archive.entries())
		.map((entry, place) => ({ ...entry, place }))
		.filter((entry) => entry.kind !== 'folder')
		.map((entry) => ({ ...entry, path: pathOf(entry.name) }))
		.filter((entry) => !isClutter(entry.path))
	const files = entries.filter((entry) => entry.kind === 'file')
	const root = rootFor(files, path)
	const own = ownOf(files, root)
	if (own.reduce((sum, file) => sum + file.size, 0) > FOLDER_LIMIT_BYTES) throw tooLarge()
	const contents = await archive.read(new Set(own.map((file) => file.place)))
	const others = entries.filter((entry) => entry.kind !== 'file')
	return complete(
		own.map((file) => ({ path: file.path, bytes: contents.get(file.place) ?? new Uint8Array() })),
		within(root, others).map((entry) => ({
			path: shownPath(entry.path),
			why: entry.kind === 'link' ? 'link' : 'special',
		})),
	)
}

function rootFor(files: readonly { path: string }[], path: string | undefined): string {
	return rootOf(
		files.map((file) => file.path),
		wantedPath(path),
	)
}

/** The files of a skill, with paths relative to its folder. Throws `skill_invalid` for too many files or invalid paths. */
function ownOf<F extends { path: string }>(files: readonly F[], root: string): F[] {
	const own = within(root, files)
	if (own.length > FILES_LIMIT)
		throw new Fault(
			'skill_invalid',
			`the skill has ${own.length} files; at most ${FILES_LIMIT} are allowed, so remove some`,
		)
	const named = own.map((file) =>
		isDocument(file.path) && folderOf(file.path) === '' ? { ...file, path: DOCUMENT } : file,
	)
	checkPaths(named.map((file) => file.path))
	return named
}

function within<F extends { path: string }>(root: string, files: readonly F[]): F[] {
	return files.flatMap((file) => {
		const path = inFolder(root, file.path)
		return path === undefined ? [] : [{ ...file, path }]
	})
}

function complete(files: readonly SkillFile[], left_out: LeftOut[]): SkillFolder {
	if (files.reduce((sum, file) => sum + file.bytes.length, 0) > FOLDER_LIMIT_BYTES) throw tooLarge()
	return {
		files: files.toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))),
		left_out: left_out.slice(0, LEFT_OUT_LIMIT),
	}
}

/** Normalizes the path of a folder: `skills/pdf`, `./skills/pdf/` and `skills/pdf/SKILL.md` are the same folder. */
function wantedPath(path: string | undefined): string | undefined {
	if (path === undefined || /^[./]*$/.test(path)) return path === undefined ? undefined : ''
	const wanted = pathOf(path)
	return isDocument(wanted) ? folderOf(wanted) : wanted
}
