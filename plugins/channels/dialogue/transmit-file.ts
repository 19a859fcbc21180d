/** Sends one file despite lost connections, lost responses and rate limits. `transmit` does the same for a text. */
import { openSemaphore } from '../../../core/util/semaphore.ts'
import type { AnswerFile } from '../../runs/contract.ts'
import type { OutgoingFile } from '../adapter.ts'
import type { ConnectedChannel } from './platforms.ts'
import { idOf, markOf } from './adapter-values.ts'
import type { Upload } from './records.ts'
import { texts } from './texts.ts'
import { persisted, openRetries, adapterErrorOf } from './transmit.ts'
import type { Failure, SendDeps } from './transmit.ts'

export interface TransmitFileOptions extends Pick<OutgoingFile, 'chat' | 'after' | 'nonce'> {
	channel_id: string
	file: AnswerFile
	/** Undefined if the file was deleted. */
	bytes(): Promise<Uint8Array | undefined>
	/** Set if the file may have been sent. */
	upload: Upload | null
	/** Deadline, in ms since 1970. */
	until: number
	/** Stores the attempt before the file is sent. If it throws, sending ends with that error. */
	persist(upload: Upload): Promise<void>
}

export type FileOutcome = { status: 'sent'; id: string } | Failure

/** Limit of files, of all channels, that are in memory while they are sent. */
const UPLOADS = 4
const uploads = openSemaphore(UPLOADS)

/** Throws what `persist` throws, and the reason of the instance's signal. */
export async function transmitFile(deps: SendDeps, options: TransmitFileOptions): Promise<FileOutcome> {
	const { ctx, platforms, pace } = deps
	const { channel_id, chat, until, nonce, after } = options
	const { type, name, media_type, size } = options.file
	const file: OutgoingFile = { chat, ...(after !== undefined && { after }), type, name, media_type, size, nonce }
	let { upload } = options
	let isUnknown = upload !== null
	using retries = openRetries(deps, options, 'a file')

	for (;;) {
		const connected = await platforms.open(channel_id, until)
		if (!connected) return retries.late()
		try {
			return await sendOnce(connected)
		} catch (error) {
			const thrown = adapterErrorOf(error, ctx.signal)
			const { code, message } = thrown
			if (code === 'refused' && platforms.hasEnded(channel_id, connected)) continue
			if (code === 'format' || code === 'refused') return { status: 'refused', message }
			isUnknown ||= code === undefined
			await retries.wait(thrown, connected)
		}
	}

	/** One attempt, or the result of an earlier one. */
	async function sendOnce({ channel, connection }: ConnectedChannel): Promise<FileOutcome> {
		if (!connection.sendFile) return { status: 'refused', message: texts.noFiles }
		if (isUnknown && connection.findFile) {
			const found = await platforms.call(channel_id, async () => connection.findFile?.(file, upload?.mark))
			if (found) return { status: 'sent', id: idOf(found) }
			isUnknown = false
		}
		await pace.take(channel, chat, ctx.signal)
		const release = await uploads.acquire({ signal: ctx.signal, owner: channel_id })
		try {
			const bytes = await options.bytes()
			if (!bytes) return { status: 'refused', message: texts.fileGone }
			// Each attempt gets a new mark, since `findFile` searches only a short range after it.
			const mark = markOf(connection, chat, ctx.log)
			if (!upload || upload.mark !== mark) {
				upload = mark === undefined ? {} : { mark }
				await persisted(options.persist(upload))
			}
			return {
				status: 'sent',
				id: idOf(await platforms.call(channel_id, async () => connection.sendFile?.(file, bytes))),
			}
		} finally {
			release()
		}
	}
}
