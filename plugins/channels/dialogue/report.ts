/** Events about messages that were received from a chat, sent to it, or could not be sent. */
import type { Context } from '../../../core/plugin.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { defined } from '../../../core/util/defined.ts'
import { hasEvent } from '../../shared/log-events.ts'
import type { ChatRef } from '../adapter.ts'
import type { Reply } from './records.ts'

type ReportContext = Pick<Context, 'emit' | 'log' | 'use' | 'events'>

/** Limit of a platform's reason, in characters. */
const ERROR_LIMIT = 500

/** Emits `channel.message_received` in the message's run. Call it after `run.started`, the first event of a run. */
export async function reportReceived(ctx: ReportContext, reply: Reply, message_id: string): Promise<void> {
	const { run_id, agent, channel_id, chat } = reply
	const payload = { channel_id, ...placeOf(chat), message_id }
	const event: NewEvent = { event_type: 'channel.message_received', payload }
	await orLog(ctx, event, async () => {
		if (await ctx.use('runs').appendEvents(reply, [event])) return
		await ctx.emit({ ...event, payload: { ...payload, run_id } }, agent)
	})
}

/** Emits `channel.message_sent` in the log of the run, which has usually ended. `isResumed`: the event may have been emitted before a crash. */
export async function reportSent(ctx: ReportContext, reply: Reply, ids: string[], isResumed: boolean): Promise<void> {
	const { run_id, agent, agent_uid, channel_id, chat } = reply
	if (isResumed && (await wasReported(ctx, run_id, ids))) return
	const payload = { channel_id, run_id, ...placeOf(chat), message_ids: ids }
	const event: NewEvent = { event_type: 'channel.message_sent', payload }
	await orLog(ctx, event, async () => {
		if (await ctx.use('runs').report({ run_id, agent_uid }, [event])) return
		await ctx.emit(event, agent) // the run was deleted in the meantime
	})
}

/** Emits `channel.error`, or `message.undelivered` for a result or a message that was not delivered and will not be retried. */
export async function reportUnsent(
	ctx: ReportContext,
	{ channel_id, run_id, agent, chat, unasked }: Reply,
	code: string,
	message: string,
	event_type = unasked ? 'message.undelivered' : 'channel.error',
): Promise<void> {
	const payload = { run_id, channel_id, chat_id: chat.id, code, message: message.slice(0, ERROR_LIMIT) }
	ctx.log.warn({ channel_id, run_id, chat_id: chat.id }, `a message to a chat was not delivered: ${payload.message}`)
	const event: NewEvent = { event_type, payload }
	await orLog(ctx, event, () => ctx.emit(event, agent))
}

function placeOf({ id, thread_id }: ChatRef): { chat_id: string; thread_id?: string } {
	return { chat_id: id, ...defined({ thread_id }) }
}

/** Logs the error if an event cannot be written, since that must not affect the delivery. */
async function orLog({ log }: ReportContext, { event_type }: NewEvent, write: () => Promise<void>): Promise<void> {
	try {
		await write()
	} catch (error) {
		log.error({ err: error, event_type }, 'an event of a channel could not be written')
	}
}

/** Whether these messages were already reported before a crash. */
function wasReported({ events }: ReportContext, run_id: string, ids: readonly string[]): Promise<boolean> {
	const filter = { run_id, types: ['channel.message_sent'] }
	return hasEvent(events, filter, ({ payload }) => JSON.stringify(payload.message_ids) === JSON.stringify(ids))
}
