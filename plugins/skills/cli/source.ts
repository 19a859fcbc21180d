/** Loads the skill to install. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { CliError } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { textInput, unreadable } from '../../../core/cli/text-input.ts'
import { isFault } from '../../../core/errors.ts'
import { textIn } from '../file-kind.ts'
import { ENTRIES_LIMIT, FILES_LIMIT, FOLDER_LIMIT_BYTES } from '../folder/contract.ts'
import { inFolder, isClutter } from '../folder/paths.ts'
import { rootOf } from '../folder/root.ts'
import { archiveKind } from '../folder/unpack.ts'

/** Limit of bytes of an archive in a request. */
const ARCHIVE_LIMIT = 12 * 1024 * 1024

/** A request to install one skill. */
export interface InstallRequest {
	/** With the skill's folder, if the body is an archive. */
	query: string
	/** The bytes of an archive, or JSON. */
	body: unknown
}

/**
 * Loads the skill. `source`: an address, a file, an archive, a folder, or - for standard input. `path`: the skill's folder in it.
 * Throws a `CliError`; for a folder with several skills, its code is `skill_ambiguous`, and `errors` has the paths.
 */
export async function requestFor(cli: Cli, source: string, path: string | undefined): Promise<InstallRequest> {
	const named = path === undefined ? {} : { path }
	if (/^https?:\/\//i.test(source)) return { query: '', body: { url: source, ...named } }
	if (source !== '-' && (await isFolder(cli.cwd, source)))
		return { query: '', body: { files: await filesOf(cli, source, path) } }
	const bytes = await archiveIn(cli, source)
	if (bytes) return { query: path === undefined ? '' : `?path=${encodeURIComponent(path)}`, body: bytes }
	if (path !== undefined)
		throw new CliError('usage', `${source} is a single document; --path needs a folder or an archive`)
	return { query: '', body: { content: await textInput(cli, source) } }
}

/** The files as the gateway expects them: text as `content`, others as `base64`. */
async function filesOf(cli: Cli, source: string, path: string | undefined): Promise<object[]> {
	const folder = resolve(cli.cwd, source)
	const { files, links } = await listed(folder)
	const root = skillIn(source, files, path)
	const own = within(root, files)
	const left = within(root, links)
	if (left.length > 0) cli.out.note(`Links are not installed: ${left.slice(0, 5).join(', ')}`)
	if (own.length > FILES_LIMIT)
		throw new CliError(
			'usage',
			`${source} has ${own.length} files; a skill may have at most ${FILES_LIMIT}, so remove some`,
		)
	const sent: object[] = []
	let size = 0
	for (const name of own) {
		const bytes = await readFile(join(folder, root, name))
		size += bytes.length
		if (size > FOLDER_LIMIT_BYTES)
			throw new CliError(
				'usage',
				`${source} has more than ${FOLDER_LIMIT_BYTES / 1024 / 1024} MiB; remove what the skill does not need`,
			)
		const text = textIn(bytes)
		sent.push({ path: name, ...(text === undefined ? { base64: bytes.toString('base64') } : { content: text }) })
	}
	return sent
}

function skillIn(source: string, files: readonly string[], path: string | undefined): string {
	try {
		return rootOf(files, path === undefined ? undefined : path.replace(/^(?:\.?\/)+|\/+$/g, ''))
	} catch (error) {
		if (!isFault(error)) throw error
		const exit = error.code === 'skill_ambiguous' ? 'usage' : 'not_found'
		throw new CliError(exit, `${source}: ${error.message}`, {
			code: error.code,
			errors: error.errors ?? [],
			cause: error,
		})
	}
}

function within(root: string, paths: readonly string[]): string[] {
	return paths.flatMap((path) => inFolder(root, path) ?? [])
}

/** Lists the paths below a folder, with slashes. Does not follow links. */
async function listed(folder: string): Promise<{ files: string[]; links: string[] }> {
	const files: string[] = []
	const links: string[] = []
	const folders = [folder]
	for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
		for (const entry of await readdir(at, { withFileTypes: true })) {
			const path = relative(folder, join(at, entry.name)).split(sep).join('/')
			if (isClutter(path)) continue
			if (entry.isDirectory()) folders.push(join(at, entry.name))
			else if (entry.isFile()) files.push(path)
			else links.push(path)
		}
		if (files.length > ENTRIES_LIMIT)
			throw new CliError('usage', `the folder has more than ${ENTRIES_LIMIT} files; give the folder of the skill`)
	}
	return { files: files.toSorted(), links: links.toSorted() }
}

/** The bytes of an archive; undefined if the name is not that of an archive. */
async function archiveIn(cli: Cli, source: string): Promise<Buffer | undefined> {
	if (!/\.(?:zip|skill|tar\.gz|tgz)$/i.test(source)) return undefined
	try {
		const path = resolve(cli.cwd, source)
		const { size } = await stat(path)
		if (size > ARCHIVE_LIMIT)
			throw new CliError(
				'usage',
				`${source} has more than ${ARCHIVE_LIMIT / 1024 / 1024} MiB; unpack it, and install the folder`,
			)
		const bytes = await readFile(path)
		if (archiveKind(bytes)) return bytes
	} catch (error) {
		throw error instanceof CliError ? error : unreadable(source, error)
	}
	throw new CliError('usage', `${source} is neither a zip nor a tar.gz archive`)
}

async function isFolder(cwd: string, name: string): Promise<boolean> {
	try {
		return (await stat(resolve(cwd, name))).isDirectory()
	} catch (error) {
		throw unreadable(name, error)
	}
}
