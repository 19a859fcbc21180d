/** One beat: starts its run, or is skipped. */
import { isFault } from '../../core/errors.ts'
import { now as isoNow } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { causedBy } from '../../core/util/context.ts'
import type { NewEvent } from '../../core/protocol.ts'
import { hasEvent } from '../shared/log-events.ts'
import type { HeartbeatSettings } from './contract.ts'
import { beatsOnce, conversationOf, endRecord, keys } from './records.ts'
import type { BeatDecision, HeartbeatRecord } from './records.ts'
import { nextBeat } from './schedule.ts'
import type { RunRecord } from '../runs/contract.ts'

/** Timers are inexact: a beat is missed only if it is later than this. */
const MIN_GRACE_MS = 5_000
/** Idempotency keys of runs are kept for 24 hours. After that, it is unknown whether the run was started. */
const KEY_LIFE_MS = 23 * 3_600_000

/**
 * Executes the due beat, if any, and returns the time of the next one. Returns undefined if there is none: the heartbeat fires once,
 * is paused, or was deleted.
 *
 * The decision is stored first, then executed and reported, and then the record moves to the next beat. So each beat starts at most
 * one run and is reported once, even after a crash at any point. This cannot be one `change`, since the run is started between two
 * commits.
 */
export async function beat(ctx: Context<HeartbeatSettings>, agent: AgentRef, id: string): Promise<number | undefined> {
	const { store } = ctx
	const key = keys.heartbeat(agent.uid, id)
	const entry = await store.get<HeartbeatRecord>(key)
	if (!entry) return undefined
	const record = entry.value
	if (record.next_at === null) return undefined
	const now = Date.now()
	const due = Date.parse(record.next_at)
	if (due > now) return due
	const next = beatsOnce(record) ? undefined : nextBeat(record, due, now)

	try {
		const decision = record.begun ?? (await decide(ctx, agent, record, due, now))
		const rev = record.begun ? entry.rev : await store.update(key, { ...record, begun: decision }, entry.rev)
		const run = decision.skip === null ? await startRun(ctx, agent, record, decision) : decision.skip
		const event = eventOf(record, run, next)
		if (event && (!record.begun || !(await wasReported(ctx, agent, record, decision)))) {
			await ctx.emit(event, agent.name)
			if (typeof run === 'string') ctx.log.info({ agent_id: agent.name, ...event.payload }, 'a heartbeat was skipped')
		}
		const last_at = typeof run === 'string' ? record.last_at : run.created_at
		if (next !== undefined)
			await store.update(key, { ...record, begun: null, last_at, next_at: new Date(next).toISOString() }, rev)
		else if (!(await endRecord(store, agent.uid, id, rev))) return await beat(ctx, agent, id)
		return next
	} catch (error) {
		if (isFault(error, 'conflict')) return beat(ctx, agent, id) // the heartbeat was deleted, or another gateway has executed the beat
		if (isFault(error, 'not_found')) return undefined // the agent was deleted
		throw error
	}
}

type Skip = NonNullable<BeatDecision['skip']>

async function decide(
	{ config, use }: Context<HeartbeatSettings>,
	agent: AgentRef,
	record: HeartbeatRecord,
	due: number,
	now: number,
): Promise<BeatDecision> {
	// A reminder that fires once is sent late rather than never.
	if (beatsOnce(record)) return { at: isoNow(), skip: null }
	const isMissed = now - due > Math.max(config.missed_grace_s * 1_000, MIN_GRACE_MS)
	const skip = isMissed ? 'missed' : (await use('runs').isBusy(agent, conversationOf(record.id))) ? 'busy' : null
	return { at: isoNow(), skip }
}

/** The run of this beat, or why none was started. Idempotent. */
async function startRun(
	{ use }: Context<HeartbeatSettings>,
	agent: AgentRef,
	record: HeartbeatRecord,
	decision: BeatDecision,
): Promise<RunRecord | Skip> {
	const { id, prompt, next_at, destination } = record
	if (Date.now() - Date.parse(decision.at) > KEY_LIFE_MS) return 'missed'
	try {
		return await causedBy({ actor: { kind: 'gateway' } }, () =>
			use('runs').start(agent, {
				prompt,
				trigger: 'heartbeat',
				conversation: conversationOf(id),
				destination,
				origin: { event_type: 'heartbeat.fired', payload: { heartbeat_id: id, due_at: next_at } },
				idempotency_key: `heartbeat:${id}:${next_at}`,
			}),
		)
	} catch (error) {
		// A heartbeat that fires once is retried.
		if (isFault(error, 'queue_full') && !beatsOnce(record)) return 'queue_full'
		throw error
	}
}

/** The event to emit; null if the run's log already has it. */
function eventOf(
	{ id, next_at: due_at }: HeartbeatRecord,
	run: RunRecord | Skip,
	next: number | undefined,
): NewEvent | null {
	const about = { heartbeat_id: id, due_at }
	if (typeof run !== 'string') {
		// Begun by version 0.1.0, which wrote the event outside the log of the run.
		const isOld = run.origin === undefined
		return isOld ? { event_type: 'heartbeat.fired', payload: { ...about, run_id: run.run_id } } : null
	}
	return {
		event_type: 'heartbeat.skipped',
		payload: { ...about, reason: run, next_at: next === undefined ? null : new Date(next).toISOString() },
	}
}

/** Whether this beat was already reported before a crash. */
function wasReported(
	{ events }: Context<HeartbeatSettings>,
	agent: AgentRef,
	{ id, next_at }: HeartbeatRecord,
	{ at }: BeatDecision,
): Promise<boolean> {
	const filter = { agent_id: agent.name, types: ['heartbeat.fired', 'heartbeat.skipped'], since: at }
	return hasEvent(events, filter, ({ payload }) => payload.heartbeat_id === id && payload.due_at === next_at)
}
