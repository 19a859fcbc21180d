/** The service: adds, lists and deletes heartbeats. */
import { unguarded } from '../../core/events/families.ts'
import { newId } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type { Heartbeat, Heartbeats, HeartbeatSettings } from './contract.ts'
import { addRecord, conversationOf, idOf, keys, removeRecord } from './records.ts'
import type { HeartbeatRecord } from './records.ts'
import { nextBeat, scheduleOf } from './schedule.ts'
import type {} from '../agents/contract.ts'

type HeartbeatContext = Pick<Context<HeartbeatSettings>, 'store' | 'config' | 'emit' | 'use'>

export function heartbeatsOf({ store, config, emit, use }: HeartbeatContext): Heartbeats {
	return {
		async list(agent) {
			const found: Heartbeat[] = []
			for await (const { value } of store.list<HeartbeatRecord>(keys.heartbeats(agent.uid))) found.push(view(value))
			return found.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1))
		},
		async create(agent, { prompt, deliver, ...wanted }, call) {
			const now = Date.now()
			const schedule = scheduleOf(wanted, now)
			const destination = await use('runs').destination(agent, deliver, call?.run_id)
			const { record } = await addRecord(
				store,
				agent,
				{
					id: call ? idOf(call.key) : newId(),
					...schedule,
					prompt,
					destination,
					created_at: new Date(now).toISOString(),
					next_at: new Date(nextBeat(schedule, now, now)).toISOString(),
					last_at: null,
					begun: null,
				},
				config.max_per_agent,
			)
			const { id: heartbeat_id, cron, timezone, every, next_at } = record
			const event = { event_type: 'heartbeat.created', payload: { heartbeat_id, cron, timezone, every, next_at } }
			await (call ? unguarded(call.emit)(event) : emit(event, agent.name))
			return view(record)
		},
		async remove(agent, id, call) {
			if (!(await removeRecord(store, agent, id, call?.key))) return
			await use('runs').forgetNotes(agent, conversationOf(id))
			const event = { event_type: 'heartbeat.deleted', payload: { heartbeat_id: id } }
			await (call ? unguarded(call.emit)(event) : emit(event, agent.name))
		},
	}
}

function view({ begun: _begun, destination, ...shown }: HeartbeatRecord): Heartbeat {
	return { ...shown, deliver: destination?.deliver ?? 'none' }
}
