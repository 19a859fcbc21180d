/** Loads the files of a message and stores them. What cannot be loaded is told to the model: the message is never lost. */
import { isFault, messageOf } from '../../../core/errors.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { Attachment } from '../../../core/protocol.ts'
import { within } from '../../../core/util/deadline.ts'
import type {} from '../../attachments/contract.ts'
import type { IncomingFile, IncomingMessage } from '../adapter.ts'
import { texts } from './texts.ts'

export interface LoadedFiles {
	attachments: Attachment[]
	/** One for each file that is missing. */
	lines: string[]
}

const FILES = 10
/** For all files of a message: the messages behind it wait. */
const LOAD_MS = 20_000
const MIB = 1024 * 1024

export async function loadFiles(
	{ use, signal }: Pick<Context, 'use' | 'signal'>,
	agent: AgentRef,
	{ attachments: files = [] }: IncomingMessage,
): Promise<LoadedFiles> {
	const loaded: LoadedFiles = { attachments: [], lines: [] }
	if (files.length === 0) return loaded
	const { limits } = use('attachments')
	const until = AbortSignal.any([signal, AbortSignal.timeout(LOAD_MS)])
	const count = Math.min(FILES, limits.max_per_message)
	let bytes = 0
	for (const file of files.slice(0, count)) {
		try {
			const attachment = await one(file)
			bytes += attachment.size
			loaded.attachments.push(attachment)
		} catch (error) {
			if (isFault(error, 'storage_full', 'not_found')) throw error
			loaded.lines.push(texts.lost(file.what, until.aborted ? 'it took too long' : messageOf(error)))
		}
	}
	if (files.length > count) loaded.lines.push(texts.lost(`${files.length - count} more files`, 'these are too many'))
	return loaded

	async function one({ load, name, media_type, seconds, size = 0 }: IncomingFile): Promise<Attachment> {
		const limit = Math.min(limits.max_mib * MIB, limits.max_mib_per_message * MIB - bytes)
		const isTooLarge = (is: number): void => {
			if (is > limit) throw new Error(`it is larger than ${Math.floor(limit / MIB)} MiB`)
		}
		isTooLarge(size)
		until.throwIfAborted()
		const content = await within(LOAD_MS, 'the platform', load(until))
		isTooLarge(content.length)
		const [attachment] = await use('attachments').take(agent, [{ bytes: content, name, media_type, seconds }])
		if (!attachment) throw new Error('it could not be stored')
		return attachment
	}
}
