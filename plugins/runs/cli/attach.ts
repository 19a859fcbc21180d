/** Builds the request that starts a run: prompt, attachments and conversation. */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { Attachment } from '../../../core/protocol.ts'

/** As the gateway returns an upload. */
export type Uploaded = Pick<Attachment, 'blob' | 'name'>

const reasons: Record<string, string> = {
	ENOENT: 'there is no such file; put the prompt before --attach',
	EISDIR: 'it is a folder; name the files in it',
}

export interface RunExtras {
	attachments?: readonly Uploaded[]
	/** Absent: the agent's current session. */
	conversation?: string | undefined
}

/** The body of POST /v1/agents/{name}/runs. */
export function runOf(prompt: string, { attachments = [], conversation }: RunExtras): object {
	if (attachments.length === 0) return { prompt, conversation }
	const files = attachments.map(({ blob, name }) => ({ blob, name }))
	return { prompt: prompt.trim() === '' ? undefined : prompt, attachments: files, conversation }
}

/** Uploads the files, one after another. */
export async function uploaded(cli: Cli, agent: string, files: readonly string[]): Promise<Uploaded[]> {
	const attachments: Uploaded[] = []
	for (const file of files) {
		const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
			throw new CliError('usage', `${file} cannot be read: ${reasons[error.code ?? ''] ?? error.message}`, {
				cause: error,
			})
		})
		const place = `${path`/v1/agents/${agent}/blobs`}?name=${encodeURIComponent(basename(file))}`
		attachments.push(await cli.api.request<Uploaded>('POST', place, bytes))
	}
	return attachments
}
