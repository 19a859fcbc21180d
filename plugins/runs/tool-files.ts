/** Stores the files of a tool's result as blobs that the run keeps. */
import { isFault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolFile } from '../../core/plugin.ts'
import { decodeText, textAtBeginning } from '../../sandbox/text-type.ts'
import type { Attachment } from '../../core/protocol.ts'
import { namesHidden } from '../../core/redactor/redactor.ts'
import type { View } from '../../core/redactor/view.ts'
import type { Op } from '../../core/store/ports.ts'
import type { StoredFiles } from './tool-call.ts'
import type { RunRecord } from './contract.ts'

const FILES = 16
const BYTES = 20 * 1024 * 1024

/**
 * Files that are refused are reported to the model. Throws other errors, such as that of a full disk. `redactor`: of the run.
 */
export async function storeFiles(
	ctx: Pick<Context, 'use'>,
	{ agent_uid, run_id }: Pick<RunRecord, 'agent_uid' | 'run_id'>,
	agent: AgentRef,
	files: readonly ToolFile[],
	redactor: View,
): Promise<StoredFiles> {
	const attachments: Attachment[] = []
	const omitted: string[] = []
	let bytes = 0
	for (const [at, file] of files.entries()) {
		bytes += file.bytes.length
		if (at >= FILES || bytes > BYTES) {
			omitted.push(`${files.length - at} more attachments are omitted: a result may have ${FILES}, of 20 MiB together`)
			break
		}
		try {
			attachments.push(...(await ctx.use('attachments').take(agent, [withoutSecrets(file, redactor)])))
		} catch (error) {
			if (!isFault(error, 'invalid_request', 'payload_too_large')) throw error
			omitted.push(`an attachment is omitted: ${error.message}`)
		}
	}
	const ops = async (): Promise<Op[]> => (await ctx.use('attachments').blobs.use(agent_uid, run_id, attachments)).ops
	return { attachments, omitted, ops }
}

/** Redacts secrets, and their names, in the file's name and text: callers without access to the names can download the file. */
function withoutSecrets({ bytes, name = '', ...file }: ToolFile, redactor: View): ToolFile {
	if (!redactor.active) return { ...file, bytes, name }
	const safe = (text: string): string => namesHidden.text(redactor.text(text, 'record'))
	const text = textIn(bytes)
	const shown = text === undefined ? undefined : safe(text)
	return { ...file, bytes: shown === text || shown === undefined ? bytes : Buffer.from(shown), name: safe(name) }
}

/** Undefined for bytes that are not text. A file that counts as text because of its beginning may have errors further on. */
function textIn(bytes: Uint8Array): string | undefined {
	if (textAtBeginning(bytes) !== undefined) return decodeText(bytes)
	try {
		return decodeText(bytes, { fatal: true })
	} catch {
		return undefined
	}
}
