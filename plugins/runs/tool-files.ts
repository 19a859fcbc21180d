/** Attachments of a tool's result: from the bytes that it returned to blobs that the run keeps. */
import { isFault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolFile } from '../../core/plugin.ts'
import type { Attachment } from '../../core/protocol.ts'
import { namesHidden } from '../../core/redactor/redactor.ts'
import type { View } from '../../core/redactor/view.ts'
import type { Op } from '../../core/store/ports.ts'
import type { StoredFiles } from './tool-call.ts'
import type { RunRecord } from './contract.ts'

const FILES = 16
const BYTES = 20 * 1024 * 1024

/**
 * One that is refused is reported to the model; other errors, such as a full disk, are thrown. `redactor` redacts the names, which are
 * shortened when they are stored.
 */
export async function storeFiles(
	ctx: Pick<Context, 'use'>,
	{ agent_uid, run_id }: Pick<RunRecord, 'agent_uid' | 'run_id'>,
	agent: AgentRef,
	files: readonly ToolFile[],
	redactor: View,
): Promise<StoredFiles> {
	const attachments: Attachment[] = []
	const left_out: string[] = []
	let bytes = 0
	for (const [at, file] of files.entries()) {
		bytes += file.bytes.length
		if (at >= FILES || bytes > BYTES) {
			left_out.push(
				`${files.length - at} more attachments are left out: a result may have ${FILES}, of 20 MiB together`,
			)
			break
		}
		try {
			const name = namesHidden.text(redactor.text(file.name ?? '', 'record'))
			attachments.push(...(await ctx.use('attachments').take(agent, [{ ...file, name }])))
		} catch (error) {
			if (!isFault(error, 'invalid_request', 'payload_too_large')) throw error
			left_out.push(`an attachment is left out: ${error.message}`)
		}
	}
	const ops = async (): Promise<Op[]> => (await ctx.use('attachments').blobs.use(agent_uid, run_id, attachments)).ops
	return { attachments, left_out, ops }
}
