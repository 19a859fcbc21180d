/** Messages that the gateway adds to a conversation outside of its runs: each is a turn that is complete when it is written. */
import { now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Op } from '../../core/store/ports.ts'
import type { RunRecord, Runs, SaidMessage } from './contract.ts'
import { forgetRun } from './forget.ts'
import { keys } from './keys.ts'
import type { IndexEntry } from './keys.ts'
import { appendWith } from './records.ts'
import { openRun } from './run-log.ts'
import { repetition } from './start.ts'
import { newRunId } from './run-ids.ts'

/** As `Runs.say` and `Runs.unsay`. */
export function saidOf(ctx: Pick<Context, 'store' | 'events' | 'use'>): Pick<Runs, 'say' | 'unsay'> {
	const { store, events } = ctx
	return {
		async say(agent, { conversation, content, about, idempotency, also }) {
			const { uid, name } = agent
			const repeated =
				idempotency &&
				repetition(store, uid, `said:${idempotency.key}`, { prompt: idempotency.body, trigger: 'message' })
			const earlier = await repeated?.find()
			if (earlier) return { message: earlier, isNew: false }
			const message = recordOf(agent, { conversation, content, about })
			const { run_id } = message
			await store.put(keys.index(run_id), { agent: name, uid } satisfies IndexEntry)
			const log = await openRun(events, { run_id, agent_id: name }, true)
			let first: RunRecord | undefined
			const event = { event_type: 'message.said', payload: { content, conversation, about } }
			try {
				await appendWith(log, uid, { events: [event] }, async () => {
					first = await repeated?.find()
					if (first) throw new Error('a concurrent call with the same key has written the message')
					const ops: Op[] = [
						{ key: keys.run(uid, run_id), value: message, expect: null },
						{ key: keys.turn(uid, conversation, run_id), value: {}, expect: null },
						...(repeated ? [await repeated.op(run_id)] : []),
						...(await also(run_id)),
					]
					return { ops, result: undefined }
				})
			} catch (error) {
				await store.delete(keys.index(run_id))
				if (first) return { message: first, isNew: false }
				throw error
			} finally {
				log.close()
			}
			return { message, isNew: true }
		},
		async unsay({ uid }, message_id) {
			const entry = await store.get<RunRecord>(keys.run(uid, message_id))
			if (entry?.value.said) await forgetRun(ctx, entry.value)
		},
	}
}

function recordOf(
	{ name, uid }: AgentRef,
	{ conversation, content, about }: Pick<SaidMessage, 'conversation' | 'content' | 'about'>,
): RunRecord {
	const at = now()
	return {
		run_id: newRunId(),
		agent: name,
		agent_uid: uid,
		conversation,
		status: 'completed',
		trigger: 'message',
		said: true,
		prompt: `[Remark of the gateway: ${about} You said this:]`,
		created_at: at,
		started_at: at,
		ended_at: at,
		answer: content,
		usage: { input_tokens: 0, output_tokens: 0 },
		finish_reason: 'stop',
		error: null,
		question: null,
		active_ms: 0,
	}
}
