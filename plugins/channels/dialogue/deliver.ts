/** Sends the questions and the answer of a run to its chat. Each part is sent once, even if the gateway crashes at any point. */
import { now } from '../../../core/util/ids.ts'
import type { RunRecord } from '../../runs/contract.ts'
import type { DialogueDeps } from './deps.ts'
import type { FollowedRun } from './followed.ts'
import type { Reply } from './records.ts'
import { boundTo } from './place.ts'
import { Gone, openReply } from './reply.ts'
import { reportUnsent } from './report.ts'
import { sendDue } from './send-due.ts'
import type { DueText } from './send-due.ts'
import { closeFence } from './split.ts'
import { NOTHING_TO_SAY, texts, withNewlines } from './texts.ts'
import { addToConversation, isRepeatedFailure, removeFromConversation } from './unasked.ts'

const ANSWER_AGE_MS = 24 * 3_600_000
/** Limit of an answer that is sent to a chat, in characters. */
const TEXT_LIMIT = 64 * 1024

interface Due extends Omit<DueText, 'text'> {
	/** Null if nothing is to be sent. */
	text: string | null
	isLast: boolean
}

/** Sends everything that is due now. Settles once it was sent or cannot be sent. Returns true if nothing more will be due for the run. */
export async function deliver(deps: DialogueDeps, run: FollowedRun): Promise<boolean> {
	const { ctx } = deps
	for (;;) {
		ctx.signal.throwIfAborted()
		let record = await openReply(ctx, run.reply)
		if (!record) return true
		const due = await whatIsDue(deps, record.value, run)
		if (!due) return false
		try {
			if (record.value.unasked && due.text !== null) {
				// Bindings may have changed while the run executed, or its channel was not connected.
				const bound = await boundTo(deps, { uid: record.value.agent_uid }, record.value)
				if (!bound) {
					await reportUnsent(ctx, record.value, 'unbound', 'the chat is no longer bound to the agent')
					await removeFromConversation(ctx, record.value)
					await record.remove()
					return true
				}
				if (due.isLast) await addToConversation(deps, bound, record.value, due.text)
				record = (await openReply(ctx, run.reply)) ?? record
			}
			const sent_id = due.text === null ? undefined : await sendDue(deps, record, run, { ...due, text: due.text })
			if (due.isLast) {
				if (sent_id === undefined) await removeFromConversation(ctx, record.value)
				await record.remove({ sent_id })
				return true
			}
			const asked = [...record.value.asked, due.what]
			const sent = sent_id === undefined ? {} : { said: due.what, said_at: now() }
			await record.change({ saying: null, preview: null, asked, ...sent }, { sent_id })
			Object.assign(run, sent)
		} catch (error) {
			if (error instanceof Gone) return true
			throw error
		} finally {
			run.sendingQuestion?.resolve()
			run.sendingQuestion = null
		}
	}
}

/** Undefined if the run continues without an unsent question. */
async function whatIsDue(
	{ ctx, registry }: DialogueDeps,
	reply: Reply,
	followed: FollowedRun,
): Promise<Due | undefined> {
	const run = await ctx.use('runs').find(reply.run_id)
	const { question, stopConfirmed, shown, draft } = followed
	const last = { what: 'answer', isLast: true, until: Date.parse(run?.ended_at ?? '') + ANSWER_AGE_MS }
	if (!run) return { ...last, text: null }
	if (reply.unasked && (run.status === 'stopped' || isNothing(run))) return { ...last, text: null }
	switch (run.status) {
		case 'completed':
			return { ...last, text: answerOf(run), files: run.files }
		case 'failed':
			if (reply.unasked && (await isRepeatedFailure(ctx, run))) return { ...last, text: null }
			return { ...last, text: run.error ? texts.failed(run.error, run.run_id) : null }
		case 'stopped':
			// What users have already seen stays.
			if (shown !== undefined && draft.trim() !== '')
				return { ...last, text: closeFence(withNewlines(draft).trimEnd()) + texts.brokenOff }
			return { ...last, text: stopConfirmed && !reply.preview ? null : texts.stopped }
		default: {
			const open = question ?? (await ctx.use('runs').asked(run))
			if (!open || reply.asked.includes(open.question_id)) return undefined
			const asked = open.run_id === run.run_id ? texts.question(open) : texts.questionBelow(open)
			const seesAll = reply.chat.kind === 'private' || registry.channel(reply.channel_id)?.config.answer === 'all'
			const text = seesAll ? asked : closeFence(asked) + texts.answerToMe
			return { what: open.question_id, text, until: Date.now() + ANSWER_AGE_MS, isLast: false }
		}
	}
}

/** Whether a completed run has nothing to deliver: an empty answer, or exactly NOTHING_TO_SAY. */
function isNothing({ status, answer, said, files }: RunRecord): boolean {
	const text = answer?.trim() ?? ''
	return !said && status === 'completed' && ((text === '' && !files) || text === NOTHING_TO_SAY)
}

function answerOf({ run_id, answer, files }: RunRecord): string {
	const text = withNewlines(answer ?? '')
	if (text.trim() === '') return files ? texts.files(files) : texts.empty
	return text.length <= TEXT_LIMIT ? text : closeFence(text.slice(0, TEXT_LIMIT).toWellFormed()) + texts.cut(run_id)
}
