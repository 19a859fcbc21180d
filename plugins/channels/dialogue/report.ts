/** Events about messages that were sent to a chat, or could not be sent. */
import type { Context } from '../../../core/plugin.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { hasEvent } from '../../shared/log-events.ts'
import type { Reply } from './records.ts'
import type { Failure } from './transmit.ts'

type EmitContext = Pick<Context, 'emit' | 'log'>
type ReportContext = EmitContext & Pick<Context, 'use' | 'events'>

/** Limit of a platform's reason, in characters. */
const ERROR_LIMIT = 500

/** Emits `channel.message_sent` in the log of the run, which has usually ended. `isResumed`: the event may have been emitted before a crash. */
export async function reportSent(ctx: ReportContext, reply: Reply, ids: string[], isResumed: boolean): Promise<void> {
	const { run_id, agent, agent_uid, channel_id, chat } = reply
	if (isResumed && (await wasReported(ctx, run_id, ids))) return
	const thread = chat.thread_id === undefined ? {} : { thread_id: chat.thread_id }
	const payload = { channel_id, run_id, chat_id: chat.id, ...thread, message_ids: ids }
	const event: NewEvent = { event_type: 'channel.message_sent', payload }
	await orLog(ctx, event, async () => {
		if (await ctx.use('runs').report({ run_id, agent_uid }, [event])) return
		await ctx.emit(event, agent) // the run was deleted in the meantime
	})
}

export async function reportFailure(ctx: ReportContext, reply: Reply, outcome: Failure): Promise<void> {
	const message =
		outcome.status === 'refused' ? outcome.message.slice(0, ERROR_LIMIT) : 'the channel was not connected in time'
	if (reply.unasked) await reportUndelivered(ctx, reply, outcome.status, message)
	else await reportError(ctx, reply, outcome.status, message)
}

/** Emits `channel.error`. */
export async function reportError(
	ctx: EmitContext,
	{ channel_id, run_id, agent, chat }: Reply,
	code: string,
	message: string,
): Promise<void> {
	const payload = { channel_id, run_id, chat_id: chat.id, code, message: message.slice(0, ERROR_LIMIT) }
	const event: NewEvent = { event_type: 'channel.error', payload }
	await orLog(ctx, event, () => ctx.emit(event, agent))
}

/** Emits `message.undelivered`: a result or a message was not delivered and will not be retried. */
export async function reportUndelivered(
	ctx: EmitContext,
	{ run_id, agent, channel_id, chat }: Reply,
	code: string,
	message: string,
): Promise<void> {
	const event: NewEvent = {
		event_type: 'message.undelivered',
		payload: { run_id, channel_id, chat_id: chat.id, code, message },
	}
	await orLog(ctx, event, () => ctx.emit(event, agent))
}

/** Logs the error if an event cannot be written, since that must not affect the delivery. */
async function orLog({ log }: EmitContext, { event_type }: NewEvent, write: () => Promise<void>): Promise<void> {
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
