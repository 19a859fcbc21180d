/** Keeps the next beat of every heartbeat in the timetable while this instance is active. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import { changeRecord } from '../../core/store/change.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { beat } from './beat.ts'
import type { HeartbeatSettings } from './contract.ts'
import { keys } from './records.ts'
import type { HeartbeatRecord } from './records.ts'
import { nextBeat } from './schedule.ts'
import { openTimetable } from './timetable.ts'

export function keepTime(ctx: Context<HeartbeatSettings>): void {
	const { store, log, signal } = ctx
	const timetable = ctx.own(
		openTimetable<{ agent: AgentRef; id: string }>({
			queueOf: ({ agent }) => agent.uid,
			due: ({ agent, id }) => beat(ctx, agent, id),
			failed: (error, { agent, id }) =>
				log.error({ err: error, agent_id: agent.name, heartbeat_id: id }, 'a heartbeat failed; it will be retried'),
			clockSetBack: () => loadAll(),
		}),
		'beats in progress',
	)
	const enter = async ({ name, uid }: AgentRef, id: string): Promise<void> => {
		const at = await dueOf(ctx, uid, id)
		if (at === undefined) timetable.delete(id)
		else timetable.set(id, at, { agent: { name, uid }, id })
	}
	const load = async (): Promise<void> => {
		for await (const agent of ctx.use('agents').list()) {
			for await (const { value } of store.list<HeartbeatRecord>(keys.heartbeats(agent.uid))) {
				if (signal.aborted) return
				await enter(agent, value.id)
			}
		}
	}
	const loadAll = (): void =>
		void load().catch((error: unknown) =>
			log.error({ err: error }, 'heartbeats could not be loaded; restart the gateway'),
		)

	// Through events, since another generation may have added or deleted the heartbeat.
	for (const type of ['heartbeat.created', 'heartbeat.changed'])
		ctx.on(type, async ({ agent_id, payload }: EventEnvelope) => {
			const agent = await ctx.use('agents').find(agent_id ?? '')
			if (agent) await enter(agent, String(payload.heartbeat_id))
		})
	ctx.on('heartbeat.deleted', ({ payload }) => timetable.delete(String(payload.heartbeat_id)))
	ctx.on('agent.deleted', ({ payload }) => timetable.sweep(({ agent }) => agent.uid === payload.uid))
	void ctx.serving.then(loadAll)
}

/**
 * When a heartbeat is due; undefined if it is paused or was deleted. Corrects a time that is later than its schedule specifies: it was
 * computed while the clock was ahead, or with other rules of the timezone.
 */
function dueOf({ store }: Context<HeartbeatSettings>, uid: string, id: string): Promise<number | undefined> {
	return changeRecord<HeartbeatRecord, number | undefined>(store, keys.heartbeat(uid, id), (record) => {
		if (!record || record.next_at === null) return { result: undefined }
		const now = Date.now()
		const due = Date.parse(record.next_at)
		const corrected = due > now ? Math.min(due, nextBeat(record, now, now) ?? due) : due
		return corrected === due
			? { result: due }
			: { next: { ...record, next_at: new Date(corrected).toISOString() }, result: corrected }
	})
}
