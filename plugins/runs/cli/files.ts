/** Files on this machine: those uploaded with a prompt, and those saved from an answer. */
import { readFile, writeFile } from 'node:fs/promises'
import { basename, join, parse } from 'node:path'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { Attachment } from '../../../core/protocol.ts'
import type { AnswerFile } from '../contract.ts'
import type { Run } from './run-record.ts'

/** As the gateway returns an upload. */
export type Uploaded = Pick<Attachment, 'blob' | 'name'>

const unreadable = {
	ENOENT: 'there is no such file; put the prompt before --attach',
	EISDIR: 'it is a folder; name the files in it',
}
const unwritable = {
	EEXIST: 'the file exists already; move it, or choose another folder',
	ENOENT: 'the folder does not exist; create it first',
	ENOTDIR: 'the parent is not a folder; choose another one',
}

/** Bytes of a file name that all common file systems accept. */
const NAME_BYTES = 200

/** Uploads the files, one after another. */
export async function uploaded(cli: Cli, agent: string, files: readonly string[]): Promise<Uploaded[]> {
	const attachments: Uploaded[] = []
	for (const file of files) {
		const bytes = await readFile(file).catch(refused(`${file} cannot be read`, unreadable))
		const place = `${path`/v1/agents/${agent}/blobs`}?name=${encodeURIComponent(basename(file))}`
		attachments.push(await cli.api.request<Uploaded>('POST', place, bytes))
	}
	return attachments
}

/** Saves the files of an answer in a folder, one after another. Overwrites nothing. Returns where each was written. */
export async function saveFiles(cli: Cli, { agent, files = [] }: Run, folder: string) {
	const saved: (AnswerFile & { path: string })[] = []
	const names = new Set<string>()
	for (const file of files) {
		const name = localName(file.name, names)
		names.add(name)
		const place = join(folder, name)
		const bytes = await cli.api.request<Uint8Array>('GET', path`/v1/agents/${agent}/blobs/${file.blob}`, undefined, {
			bytes: true,
		})
		await writeFile(place, bytes, { flag: 'wx' }).catch(refused(`${place} cannot be written`, unwritable))
		saved.push({ ...file, path: place })
	}
	return saved
}

/** `reasons`: by the code of the error. */
function refused(problem: string, reasons: Record<string, string>) {
	return (error: NodeJS.ErrnoException): never => {
		throw new CliError('usage', `${problem}: ${reasons[error.code ?? ''] ?? error.message}`, { cause: error })
	}
}

/** Removes leading dots, since programs may read hidden files as settings. Adds a number if the name is taken. */
function localName(name: string, taken: ReadonlySet<string>): string {
	const { name: stem, ext } = parse(basename(name).replace(/^[.\s]+/, '') || 'file')
	const end = cut(ext, NAME_BYTES / 2)
	const begin = cut(stem, NAME_BYTES - Buffer.byteLength(end))
	let found = `${begin}${end}`
	for (let n = 2; taken.has(found); n++) found = `${begin}-${n}${end}`
	return found
}

/** The beginning of a text, at most `bytes` of UTF-8, without splitting a character. */
function cut(text: string, bytes: number): string {
	const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes))
	return text.slice(0, read)
}
