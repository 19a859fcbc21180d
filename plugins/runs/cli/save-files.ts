/** The files that an agent sent with its answer, written to a folder. */
import { writeFile } from 'node:fs/promises'
import { basename, join, parse } from 'node:path'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { AnswerFile } from '../contract.ts'
import type { Run } from './run-record.ts'

const reasons: Record<string, string> = {
	EEXIST: 'a file with this name exists; move it, or name another folder',
	ENOENT: 'the folder does not exist; create it first',
	ENOTDIR: 'it is not in a folder; name one',
}

/** Bytes of a file name that every common file system takes. */
const NAME_BYTES = 200

/** One after another. Overwrites nothing. Returns where each was written. */
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
		await writeFile(place, bytes, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
			throw new CliError('usage', `${place} cannot be written: ${reasons[error.code ?? ''] ?? error.message}`, {
				cause: error,
			})
		})
		saved.push({ ...file, path: place })
	}
	return saved
}

/** Without the leading dots of hidden files, which programs may read as settings. A further file of one name gets a number. */
function localName(name: string, taken: ReadonlySet<string>): string {
	const { name: stem, ext } = parse(basename(name).replace(/^[.\s]+/, '') || 'file')
	const end = cut(ext, NAME_BYTES / 2)
	const begin = cut(stem, NAME_BYTES - Buffer.byteLength(end))
	let found = `${begin}${end}`
	for (let n = 2; taken.has(found); n++) found = `${begin}-${n}${end}`
	return found
}

/** Whole characters. */
function cut(text: string, bytes: number): string {
	const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes))
	return text.slice(0, read)
}
