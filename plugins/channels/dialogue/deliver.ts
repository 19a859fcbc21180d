/** Sends the questions and the outcome of a run to its chat. Sends each part once, even if the gateway crashes at any point. */
import type { Context } from '../../../core/plugin.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { now } from '../../../core/util/ids.ts'
import { namesHidden } from '../../../core/redactor/redactor.ts'
import type { RunRecord } from '../../runs/contract.ts'
import type { Followed } from './followed.ts'
import { keys, nonceOf } from './records.ts'
import type { Reply, Saying } from './records.ts'
import type { PlaceRooms } from './place.ts'
import { Gone, openReply } from './reply.ts'
import type { OpenReply } from './reply.ts'
import { NOTHING_TO_SAY, texts, withNewlines } from './texts.ts'
import { transmit } from './transmit.ts'
import type { Way } from './transmit.ts'
import { mayBeSent, note, tellUndelivered, withdraw } from './unasked.ts'

const ANSWER_AGE_MS = 24 * 3_600_000
/** Characters of an answer that are sent to a chat. */
const TEXT_LIMIT = 64 * 1024
/** Characters of a platform's reason for refusing. */
const ERROR_LIMIT = 500

interface Due {
	/** As `Saying.what`. */
	what: string
	/** Markdown; null if nothing is to be sent. */
	text: string | null
	/** When it is too late, ms since 1970. */
	until: number
	isLast: boolean
}

/** Sends all that is due now. Settles once there is nothing more to send, or nothing more can be sent. True if the run needs no further messages. */
export async function deliver(way: Way & { ctx: Context; rooms: PlaceRooms }, run: Followed): Promise<boolean> {
	const { ctx } = way
	for (;;) {
		ctx.signal.throwIfAborted()
		let record = await openReply(ctx, run.reply)
		if (!record) return true
		const due = await whatIsDue(ctx, record.value, run)
		if (!due) return false
		try {
			if (record.value.unasked && due.text !== null) {
				if (!(await mayBeSent(way, record.value))) {
					await withdraw(way, record.value)
					await record.remove()
					return true
				}
				if (due.isLast) await note(way, record.value, due.text)
				record = (await openReply(ctx, run.reply)) ?? record
			}
			const sent_id = due.text === null ? undefined : await say(way, record, run, due, due.text)
			if (due.isLast) {
				if (sent_id === undefined) await withdraw(way, record.value)
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
			run.telling?.resolve()
			run.telling = null
		}
	}
}

/** Undefined if the run continues, and has no question that was not sent. */
async function whatIsDue(ctx: Context, reply: Reply, followed: Followed): Promise<Due | undefined> {
	const run = await ctx.use('runs').find(reply.run_id)
	const { question, hushed, shown, draft } = followed
	const last = { what: 'answer', isLast: true, until: Date.parse(run?.ended_at ?? '') + ANSWER_AGE_MS }
	if (!run) return { ...last, text: null }
	if (reply.unasked && (run.status === 'stopped' || isNothing(run))) return { ...last, text: null }
	switch (run.status) {
		case 'completed':
			return { ...last, text: answerOf(run) }
		case 'failed':
			return { ...last, text: run.error ? texts.failed(run.error, run.run_id) : null }
		case 'stopped':
			// What users have already seen stays.
			if (shown !== undefined && draft.trim() !== '')
				return { ...last, text: withNewlines(draft).trimEnd() + texts.brokenOff }
			return { ...last, text: hushed && !reply.preview ? null : texts.stopped }
		default: {
			const open = question ?? (await ctx.use('runs').asked(run))
			if (!open || reply.asked.includes(open.question_id)) return undefined
			const text = open.run_id === run.run_id ? texts.question(open) : texts.questionBelow(open)
			return { what: open.question_id, text, until: Date.now() + ANSWER_AGE_MS, isLast: false }
		}
	}
}

/** Only whole answers count; white space around is ignored. */
function isNothing({ status, answer, said }: RunRecord): boolean {
	const text = answer?.trim() ?? ''
	return !said && status === 'completed' && (text === '' || text === NOTHING_TO_SAY)
}

function answerOf({ run_id, answer }: RunRecord): string {
	const text = withNewlines(answer ?? '')
	if (text.trim() === '') return texts.empty
	return text.length <= TEXT_LIMIT ? text : text.slice(0, TEXT_LIMIT).toWellFormed() + texts.cut(run_id)
}

/** Resumes after the last part that was sent. What the platform refuses is dropped and reported. Returns the id of the last message. */
async function say(
	way: Way & { ctx: Context },
	record: OpenReply,
	run: Followed,
	due: Due,
	wanted: string,
): Promise<string | undefined> {
	const { ctx } = way
	const { run_id, agent, agent_uid, channel_id, chat, reply_to } = record.value
	const earlier = record.value.saying?.what === due.what ? record.value.saying : null
	const kept = earlier?.kept
		? await ctx.store.get<{ text: string }>(keys.text(agent_uid, channel_id, run_id))
		: undefined
	const source = kept?.value.text ?? namesHidden.text(wanted)
	let saying: Saying = earlier ?? {
		what: due.what,
		place: { offset: 0, fence: null },
		ids: [],
		attempt: null,
		kept: false,
	}
	while (saying.place.offset < source.length) {
		const { place, ids, attempt } = saying
		const isFirst = ids.length === 0
		const outcome = await transmit(way, {
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
			calling: (isUnderWay) => {
				run.telling ??= isUnderWay ? Promise.withResolvers() : null
				if (isUnderWay) return
				run.telling?.resolve()
				run.telling = null
			},
			// The final text must be this one, although an earlier edit of the preview may take effect only now.
			edited: (again) => void run.late?.then(again).catch(() => {}),
			remember: (next, preview) => record.change({ saying: { ...saying, attempt: next }, preview }),
		})
		if (outcome.status === 'nothing') break
		if (outcome.status !== 'sent') {
			const message =
				outcome.status === 'refused' ? outcome.message.slice(0, ERROR_LIMIT) : 'the channel was not connected in time'
			if (record.value.unasked) await tellUndelivered(ctx, record.value, outcome.status, message)
			else
				await emit(ctx, 'channel.error', agent, { channel_id, run_id, chat_id: chat.id, code: outcome.status, message })
			await record.change({ saying: null, preview: null })
			return saying.ids.at(-1)
		}
		saying = { ...saying, place: outcome.next, ids: [...ids, outcome.id], attempt: null }
		if (outcome.next.offset >= source.length) break
		// The last part is followed by the end of the record, or the next question; any other by one more part.
		const isKept = saying.kept
		saying = { ...saying, kept: true }
		await record.change({ saying, preview: null }, { text: isKept ? undefined : source, sent_id: outcome.id })
	}
	const thread = chat.thread_id === undefined ? {} : { thread_id: chat.thread_id }
	const about = { channel_id, run_id, chat_id: chat.id, ...thread, message_ids: saying.ids }
	if (saying.ids.length > 0 && !(earlier && (await wasReported(ctx, run_id, saying.ids))))
		await report(ctx, record.value, { event_type: 'channel.message_sent', payload: about })
	return saying.ids.at(-1)
}

/** Emits the event in the log of the run, which has usually ended already. */
async function report(ctx: Context, { run_id, agent, agent_uid }: Reply, event: NewEvent): Promise<void> {
	try {
		if (await ctx.use('runs').report({ run_id, agent_uid }, [event])) return
		await ctx.emit(event, agent) // the run was deleted in the meantime
	} catch (error) {
		ctx.log.error({ err: error, event_type: event.event_type }, 'an event of a channel could not be written')
	}
}

/** Were these messages reported before the gateway crashed? */
async function wasReported(ctx: Context, run_id: string, ids: readonly string[]): Promise<boolean> {
	const { entries } = await ctx.events.read({ run_id, types: ['channel.message_sent'] }, null, 100, true)
	return entries.some(({ event }) => JSON.stringify(event.payload.message_ids) === JSON.stringify(ids))
}

async function emit(ctx: Context, event_type: string, agent: string, payload: Record<string, unknown>): Promise<void> {
	try {
		await ctx.emit({ event_type, payload }, agent)
	} catch (error) {
		ctx.log.error({ err: error, event_type }, 'an event of a channel could not be written')
	}
}
