/** Loads and stores the files of a message. For a file that cannot be loaded the model gets a note; the message is never lost. */
import { isFault, messageOf } from '../../../core/errors.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { Attachment } from '../../../core/protocol.ts'
import { Late, within } from '../../../core/util/deadline.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import { unlessAborted } from '../../../core/util/unless-aborted.ts'
import type { Connection, IncomingFile } from '../adapter.ts'
import { texts } from './texts.ts'

export interface LoadedFiles {
	attachments: Attachment[]
	/** A note for each missing file. */
	lines: string[]
}

/** Maximum files of one message. */
export const FILES = 10
const MIB = 1024 * 1024

export interface Loading {
	agent: AgentRef
	files: readonly IncomingFile[]
	/** Number of files that were omitted. */
	more_files: number
	/** Time limit for all files together. */
	max_ms: number
	/** If it aborts, its reason is thrown. */
	signal: AbortSignal
	/** Undefined if the channel is not connected by `until` (ms since 1970). */
	connection(until: number): Promise<Connection | undefined>
}

/** Throws `storage_full`, `not_found` (the agent was deleted), or the reason of `signal`. */
export async function loadFiles({ use }: Pick<Context, 'use'>, loading: Loading): Promise<LoadedFiles> {
	const { agent, files, more_files, signal } = loading
	const { limits } = use('attachments')
	const taken = Math.min(files.length, limits.max_per_message)
	const loaded: LoadedFiles = { attachments: [], lines: [] }
	let bytes = 0
	const began = performance.now()
	const remainingMs = (): number => Math.max(0, began + loading.max_ms - performance.now())

	for (const file of files.slice(0, taken)) {
		const max_bytes = Math.min(limits.max_mib * MIB, limits.max_mib_per_message * MIB - bytes)
		try {
			const attachment = await loadFile(file, max_bytes)
			bytes += attachment.size
			loaded.attachments.push(attachment)
		} catch (error) {
			signal.throwIfAborted()
			if (isFault(error, 'storage_full', 'not_found')) throw error
			loaded.lines.push(texts.lost(file, reasonOf(error, max_bytes)))
		}
	}
	const skipped = more_files + files.length - taken
	if (skipped > 0) loaded.lines.push(texts.lost({ what: pluralize(skipped, 'more file') }, 'too many files'))
	return loaded

	async function loadFile({ ref, name, media_type, seconds, size = 0 }: IncomingFile, max_bytes: number) {
		if (size > max_bytes) throw new TooLarge()
		const content = await withDeadline(remainingMs(), signal, async (end) => {
			const connection = await loading.connection(Date.now() + remainingMs())
			end.throwIfAborted()
			if (!connection) throw new Error('the channel is not connected')
			if (!connection.load) throw new Error('the channel loads no files')
			return connection.load(ref, { signal: end, max_bytes })
		})
		if (!(content instanceof Uint8Array)) throw new Error('the channel returned no bytes')
		if (content.length > max_bytes) throw new TooLarge()
		const [attachment] = await use('attachments').take(agent, [{ bytes: content, name, media_type, seconds }])
		if (!attachment) throw new Error('it could not be stored')
		return attachment
	}
}

class TooLarge extends Error {}

function reasonOf(error: unknown, max_bytes: number): string {
	if (error instanceof TooLarge || isFault(error, 'fetch_too_large'))
		return `it is larger than ${Math.floor(max_bytes / MIB)} MiB`
	return error instanceof Late || isFault(error, 'fetch_timeout') ? 'it took too long' : messageOf(error)
}

/** Waits for `work` until the deadline, or until `signal` aborts, even if `work` ignores its signal. */
async function withDeadline<T>(ms: number, signal: AbortSignal, work: (end: AbortSignal) => Promise<T>): Promise<T> {
	const end = new AbortController()
	try {
		return await within(ms, 'the platform', unlessAborted(signal, work(end.signal)))
	} finally {
		end.abort()
	}
}
