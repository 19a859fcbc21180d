/** Sends the files of an answer, each once, and a line of text instead of a file that the platform refuses. */
import { namesHidden } from '../../../core/redactor/redactor.ts'
import type { AnswerFile } from '../../runs/contract.ts'
import type { Abilities } from '../adapter.ts'
import { nonceOf } from './records.ts'
import type { SendProgress, FileProgress } from './records.ts'
import type { OpenReply } from './reply.ts'
import { reportUnsent } from './report.ts'
import { texts } from './texts.ts'
import { transmit } from './transmit.ts'
import type { Failure, SendDeps } from './transmit.ts'
import { transmitFile } from './transmit-file.ts'
import type { FileOutcome } from './transmit-file.ts'

interface SendState {
	progress: SendProgress
	/** Durable when it settles. */
	store(next: Partial<SendProgress>, files: FileProgress, sent_id?: string): Promise<void>
}

/** Sends the files after the first `earlier.files.done`. Fails after the deadline, or if the chat accepts no messages. */
export async function sendFiles(
	deps: SendDeps,
	record: OpenReply,
	files: readonly AnswerFile[],
	earlier: SendProgress,
	until: number,
): Promise<{ progress: SendProgress; failure?: Failure }> {
	const state: SendState = {
		progress: earlier,
		async store(next, files, sent_id) {
			state.progress = { ...state.progress, ...next, files }
			await record.change({ saying: state.progress }, { sent_id })
		},
	}
	for (const [at, file] of files.entries()) {
		if (at < (state.progress.files?.done ?? 0)) continue
		const connected = await deps.platforms.open(record.value.channel_id, until)
		const isMentioned = connected !== undefined && reasonNotToSend(file, connected.channel.can) !== undefined
		const outcome = isMentioned ? undefined : await sendOne(deps, record, state, { file, at, until })
		if (outcome && outcome.status !== 'sent') return { progress: state.progress, failure: outcome }
		const ids = [...state.progress.ids, ...(outcome ? [outcome.id] : [])]
		await state.store({ ids, attempt: null }, { done: at + 1, upload: null }, outcome?.id)
	}
	return { progress: state.progress }
}

async function sendOne(
	deps: SendDeps,
	record: OpenReply,
	state: SendState,
	{ file, at, until }: { file: AnswerFile; at: number; until: number },
): Promise<FileOutcome> {
	const { run_id, agent, agent_uid, channel_id, chat } = record.value
	const { files } = state.progress
	const after = state.progress.ids.at(-1)
	const place = { channel_id, chat, until, ...(after !== undefined && { after }) }
	let line = files?.line
	if (line === undefined) {
		const outcome = await transmitFile(deps, {
			...place,
			nonce: nonceOf(`${run_id} file`, at),
			file: { ...file, name: namesHidden.text(file.name) },
			bytes: () => deps.ctx.use('attachments').blobs.read(agent_uid, file.blob),
			upload: files?.upload ?? null,
			persist: (upload) => state.store({}, { done: at, upload }),
		})
		if (outcome.status !== 'refused') return outcome
		await reportUnsent(deps.ctx, record.value, 'refused', `${file.name}: ${outcome.message}`, 'channel.error')
		line = namesHidden.text(texts.fileLeft(file, agent, outcome.message))
		await state.store({ attempt: null }, { done: at, upload: null, line })
	}
	// Only the first part of a long line is sent; it contains the file's name.
	const outcome = await transmit(deps, {
		...place,
		nonce: nonceOf(`${run_id} file-line`, at),
		source: line,
		place: { offset: 0, fence: null },
		attempt: state.progress.attempt,
		preview: null,
		persist: (attempt) => state.store({ attempt }, { done: at, upload: null, line }),
	})
	return outcome.status === 'nothing' ? { status: 'refused', message: 'the line about a file is empty' } : outcome
}

/** Why a channel with these abilities cannot send a file; undefined if it can. */
export function reasonNotToSend({ size }: Pick<AnswerFile, 'size'>, can: Abilities | undefined): string | undefined {
	if (!can?.files) return texts.noFiles
	return size > can.files.max_bytes ? texts.fileTooLarge(can.files.max_bytes) : undefined
}
