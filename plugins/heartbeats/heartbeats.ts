/** The service: adds, lists, changes and deletes heartbeats. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../core/errors.ts'
import { unguarded } from '../../core/events/families.ts'
import { change } from '../../core/store/change.ts'
import { newId } from '../../core/util/ids.ts'
import { invalidField } from '../shared/invalid-field.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'
import type {
	Heartbeat,
	HeartbeatChange,
	HeartbeatRequest,
	Heartbeats,
	HeartbeatSettings,
	Repeatable,
} from './contract.ts'
import { addRecord, conversationOf, findEnded, idOf, keys, markOf, notFound, removeRecord } from './records.ts'
import type { EndedRecord, HeartbeatRecord } from './records.ts'
import { nextBeat, scheduleOf } from './schedule.ts'

type HeartbeatContext = Pick<Context<HeartbeatSettings>, 'store' | 'config' | 'emit' | 'use'>

/** How long a change waits for a beat in progress. */
const BEAT_MS = 3_000
const POLL_MS = 20

export function heartbeatsOf({ store, config, emit, use }: HeartbeatContext): Heartbeats {
	const report = (agent: AgentRef, call: Repeatable | undefined, event: NewEvent) =>
		call ? unguarded(call.emit)(event) : emit(event, agent.name)

	return {
		async list(agent) {
			const records = store.list<HeartbeatRecord>(keys.heartbeats(agent.uid))
			const found = await Array.fromAsync(records, ({ value }) => view(value))
			return found.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1))
		},
		async create(agent, request, call) {
			const made = call && (await findCreated(agent, idOf(call.key)))
			const record = made ? { prompt: request.prompt, ...made } : await add(agent, request, call)
			await report(agent, call, { event_type: 'heartbeat.created', payload: timesOf(record) })
			return view(record)
		},
		async change(agent, id, wanted, call) {
			const key = keys.heartbeat(agent.uid, id)
			const mark = call && markOf(call.key)
			const until = Date.now() + BEAT_MS
			const record = await change(store, key[0], async () => {
				let entry = await store.get<HeartbeatRecord>(key)
				// A beat in progress will update the record itself.
				while (entry?.value.begun && Date.now() < until) {
					await sleep(POLL_MS)
					entry = await store.get<HeartbeatRecord>(key)
				}
				const found = entry?.value ?? (mark && (await findEnded(store, agent.uid, id)))
				if (found && mark !== undefined && found.changed_by === mark)
					return { result: { prompt: wanted.prompt ?? '', begun: null, ...found } }
				if (!entry) throw await notFound(store, agent, id)
				if (entry.value.begun) throw new Fault('unavailable', `heartbeat "${id}" is firing; try again in a moment`)
				const value = {
					...(await changed(entry.value, wanted, agent)),
					...(mark !== undefined && { changed_by: mark }),
				}
				return { ops: [{ key, value, expect: entry.rev }], result: value }
			})
			await report(agent, call, { event_type: 'heartbeat.changed', payload: timesOf(record) })
			return view(record)
		},
		async remove(agent, id, call) {
			if (!(await removeRecord(store, agent, id, call?.key))) return
			await use('runs').forgetNotes(agent, conversationOf(id))
			await report(agent, call, { event_type: 'heartbeat.deleted', payload: { heartbeat_id: id } })
		},
	}

	async function add(
		agent: AgentRef,
		{ prompt, deliver, ...wanted }: HeartbeatRequest,
		call: Repeatable | undefined,
	): Promise<HeartbeatRecord> {
		const now = Date.now()
		const schedule = scheduleOf(wanted, now, await timezoneOf(agent))
		const destination = await use('runs').destination(agent, deliver, call?.run_id)
		return addRecord(
			store,
			agent,
			{
				id: call ? idOf(call.key) : newId(),
				...schedule,
				prompt,
				destination,
				created_at: new Date(now).toISOString(),
				next_at: nextAt(schedule, now),
				paused: false,
				last_at: null,
				begun: null,
			},
			config.max_per_agent,
		)
	}

	/** The agent's `config.timezone`. Undefined if it has none, or was deleted. */
	async function timezoneOf({ name }: AgentRef): Promise<string | undefined> {
		return (await use('agents').find(name))?.config.timezone
	}

	/** The heartbeat that an earlier attempt of the call created, even if it has fired and ended since. */
	async function findCreated(agent: AgentRef, id: string): Promise<HeartbeatRecord | EndedRecord | undefined> {
		return (await store.get<HeartbeatRecord>(keys.heartbeat(agent.uid, id)))?.value ?? findEnded(store, agent.uid, id)
	}

	async function changed(
		before: HeartbeatRecord,
		{ prompt = before.prompt, deliver, paused = before.paused, ...times }: HeartbeatChange,
		agent: AgentRef,
	): Promise<HeartbeatRecord> {
		const now = Date.now()
		const isTimed = Object.values(times).some((value) => value !== undefined)
		// A timezone alone applies to the existing cron expression.
		const isZoneOnly = times.cron === undefined && times.every === undefined && times.at === undefined
		const schedule = isTimed
			? scheduleOf(
					{ ...(isZoneOnly && before.cron !== null && { cron: before.cron }), ...times },
					now,
					before.timezone ?? (await timezoneOf(agent)),
				)
			: {}
		const record: HeartbeatRecord = { ...before, ...schedule, prompt, paused }
		if (deliver !== undefined)
			record.destination = await use('runs').changeDestination(agent, before.destination, deliver)
		if (paused) record.next_at = null
		else if (isTimed || before.next_at === null) record.next_at = nextAt(record, now)
		return record
	}
}

/** Throws `invalid_request` if there is no next time. */
function nextAt(schedule: Parameters<typeof nextBeat>[0], now: number): string {
	const next = nextBeat(schedule, now, now)
	if (next !== undefined) return new Date(next).toISOString()
	throw invalidField('at', 'its time has passed while it was paused; give another one')
}

/** The payload of events. */
function timesOf({ id, cron, timezone, every, at, next_at }: EndedRecord): Record<string, unknown> {
	return { heartbeat_id: id, cron, timezone, every, at, next_at }
}

function view(record: EndedRecord & { prompt: string; begun?: unknown }): Heartbeat {
	const { begun: _begun, changed_by: _changedBy, destination, ...shown } = record
	return { ...shown, deliver: destination.deliver }
}
