/** The files that an agent sent with its answer, written to a folder. */
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { Run, RunFile } from './run-record.ts'

export interface SavedFile extends RunFile {
	/** Where it was written. */
	path: string
}

const reasons: Record<string, string> = {
	EEXIST: 'there is such a file already; move it, or name another folder',
	ENOENT: 'there is no such folder; make it first',
	ENOTDIR: 'that is no folder; name one',
}

/** One after another, under their own names. Overwrites nothing. */
export async function saveFiles(cli: Cli, { agent, files = [] }: Run, folder: string): Promise<SavedFile[]> {
	const saved: SavedFile[] = []
	for (const file of files) {
		const place = join(folder, basename(file.name))
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
