/** Sends a text and then its files. Continues where an earlier attempt ended. */
import { namesHidden } from '../../../core/redactor/redactor.ts'
import type { AnswerFile } from '../../runs/contract.ts'
import type { FollowedRun } from './followed.ts'
import { reasonNotToSend, sendFiles } from './send-files.ts'
import { keys, nonceOf } from './records.ts'
import type { SendProgress } from './records.ts'
import type { OpenReply } from './reply.ts'
import { reportSent, reportUnsent } from './report.ts'
import { closeFence } from './split.ts'
import { texts } from './texts.ts'
import { transmit } from './transmit.ts'
import type { Failure, SendDeps, TransmitOptions } from './transmit.ts'

export interface DueText {
	/** See `SendProgress.what`. */
	what: string
	/** Markdown. */
	text: string
	/** Sent after the text. */
	files?: readonly AnswerFile[] | undefined
	/** Deadline, in ms since 1970. */
	until: number
}

/**
 * Settles once everything was sent. A text that the platform refuses is dropped and reported; a refused file is replaced by a
 * line of text. Returns the id of the last message.
 */
export async function sendDue(
	deps: SendDeps,
	record: OpenReply,
	run: FollowedRun,
	due: DueText,
): Promise<string | undefined> {
	const { ctx } = deps
	const earlier = record.value.saying?.what === due.what ? record.value.saying : null
	const progress: SendProgress = earlier ?? {
		what: due.what,
		place: { offset: 0, fence: null },
		ids: [],
		attempt: null,
		kept: false,
	}
	const textSent = progress.files ? { progress } : await sendText(deps, record, run, due, progress)
	const sent =
		textSent.failure || !due.files ? textSent : await sendFiles(deps, record, due.files, textSent.progress, due.until)
	const { ids } = sent.progress
	if (sent.failure) {
		await reportUnsent(ctx, record.value, sent.failure.status, reasonOf(sent.failure))
		await record.change({ saying: null, preview: null })
	} else if (ids.length > 0) await reportSent(ctx, record.value, ids, earlier !== null)
	return ids.at(-1)
}

/** Without files, nothing is stored after the last part, since the caller then updates or deletes the record. */
async function sendText(
	deps: SendDeps,
	record: OpenReply,
	run: FollowedRun,
	due: DueText,
	earlier: SendProgress,
): Promise<{ progress: SendProgress; failure?: Failure }> {
	const { run_id, agent_uid, channel_id, chat, reply_to } = record.value
	const kept = earlier.kept
		? await deps.ctx.store.get<{ text: string }>(keys.text(agent_uid, channel_id, run_id))
		: undefined
	const source = kept?.value.text ?? namesHidden.text(await withLines(deps, record, due))
	const isLast = (place: SendProgress['place']): boolean => place.offset >= source.length
	let progress = earlier
	while (!isLast(progress.place)) {
		const { place, ids, attempt } = progress
		const isFirst = ids.length === 0
		const options: TransmitOptions = {
			channel_id,
			chat,
			...(isFirst && chat.kind === 'group' && reply_to !== undefined && { reply_to }),
			...(!isFirst && { after: ids.at(-1) as string }),
			nonce: nonceOf(`${run_id} ${due.what}`, ids.length),
			source,
			place,
			attempt,
			preview: isFirst ? record.value.preview : null,
			until: due.until,
			calling: (isStarted) => {
				run.sendingQuestion ??= isStarted ? Promise.withResolvers() : null
				if (isStarted) return
				run.sendingQuestion?.resolve()
				run.sendingQuestion = null
			},
			// An earlier edit of the preview may take effect only now, so the edit to the final text is repeated after it.
			edited: (repeat) => void run.lateEdit?.then(repeat).catch(() => {}),
			persist: (next, preview) => record.change({ saying: { ...progress, attempt: next }, preview }),
		}
		const outcome = await transmit(deps, options)
		if (outcome.status === 'nothing') break
		if (outcome.status !== 'sent') return { progress, failure: outcome }
		progress = { ...progress, place: outcome.next, ids: [...ids, outcome.id], attempt: null }
		if (isLast(outcome.next)) break
		const isKept = progress.kept
		progress = { ...progress, kept: true }
		await record.change({ saying: progress, preview: null }, { text: isKept ? undefined : source, sent_id: outcome.id })
	}
	if (due.files) {
		progress = { ...progress, files: { done: 0, upload: null } }
		await record.change({ saying: progress, preview: null }, { sent_id: progress.ids.at(-1) })
	}
	return { progress }
}

/** The text, with a line for each file that will not be sent. */
async function withLines(deps: SendDeps, { value }: OpenReply, { text, files, until }: DueText): Promise<string> {
	if (!files) return text
	const can = (await deps.platforms.open(value.channel_id, until))?.channel.can
	const lines = files.flatMap((file) => {
		const why = reasonNotToSend(file, can)
		return why === undefined ? [] : [texts.fileLeft(file, value.agent, why)]
	})
	return lines.length === 0 ? text : [closeFence(text), ...lines].join('\n\n')
}

function reasonOf({ status, message }: Failure): string {
	if (message === undefined) return 'the channel was not connected in time'
	return status === 'refused' ? message : `it could not be sent in time; the last attempt failed: ${message}`
}
