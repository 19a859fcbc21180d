/** Starts a run: one commit creates its record, its queue entry and its idempotency key. */
import { hash } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import { causeNow } from '../../core/util/context.ts'
import { defined } from '../../core/util/defined.ts'
import { now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { requestOrigin } from '../../core/http/request-id.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { untilNoConflict } from '../../core/store/change.ts'
import type { Decision } from '../../core/store/change.ts'
import type { Entry, Op, Store } from '../../core/store/ports.ts'
import type { Blobs } from '../attachments/contract.ts'
import { begin } from './begin.ts'
import { executeNow } from './claims.ts'
import type { RunRecord, RunSettings, StartRequest } from './contract.ts'
import { currentSession } from './conversation.ts'
import { begunDestination, openDestination } from './destination.ts'
import { stop } from './ending.ts'
import { adopt } from './family.ts'
import { originIn } from './journal.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'
import { isNamed } from './named-conversation.ts'
import type { QueueLimits } from './queue-limits.ts'
import { readRun } from './records.ts'
import { newRunId } from './run-ids.ts'
import { withFreeRun } from './run-lock.ts'
import { openRun } from './run-log.ts'
import { callerOf } from './waiting-by-caller.ts'

export interface IdempotencyRecord {
	run_id: string
	body: string
	at: string
}

export const IDEMPOTENCY_MS = 24 * 3600 * 1000

/** As `Runs.start`. */
export async function startRun(
	ctx: Context<RunSettings>,
	checkQueueLimits: QueueLimits,
	agent: AgentRef,
	request: StartRequest,
): Promise<RunRecord> {
	const conversation = request.conversation ?? (await currentSession(ctx.store, agent))
	const opened = await openDestination(ctx, agent, request.destination, conversation)
	const { run, isNew } = await createRun(ctx, checkQueueLimits, agent, {
		...request,
		conversation,
		...(opened?.place !== undefined && { place: opened.place }),
		...(opened && { also: async (run_id) => [...opened.ops(run_id), ...((await request.also?.(run_id)) ?? [])] }),
	})
	// The agent's record is in another scope. If the agent is already marked as deleted, the deletion may have missed this
	// run; if it is marked later, the deletion finds it.
	if (isNew && (await ctx.use('agents').find(agent.name))?.uid !== agent.uid) {
		await stop(ctx, agent.uid, run.run_id)
		await ctx.store.delete(keys.index(run.run_id))
		throw new Fault('not_found', `agent "${agent.name}" was deleted meanwhile`)
	}
	if (isNew && run.status === 'queued') await reportQueued(ctx, run)
	if (opened) await begunDestination(ctx, opened, run, isNew)
	return run
}

/** Emits `run.queued`, unless the run has already started. */
function reportQueued({ events }: Pick<Context, 'events'>, run: RunRecord): Promise<unknown> {
	const { run_id, agent, conversation } = run
	return withFreeRun(run_id, async () => {
		const log = await openRun(events, { run_id, agent_id: agent })
		if (log.journal.last === 0)
			await log.append([...originIn(log, run), { event_type: 'run.queued', payload: { conversation } }])
		log.close()
	})
}

/** `isNew` is false if the idempotency key returned an earlier run. */
async function createRun(
	ctx: Context<RunSettings>,
	checkQueueLimits: QueueLimits,
	agent: AgentRef,
	request: StartRequest & { conversation: string },
): Promise<{ run: RunRecord; isNew: boolean }> {
	const { store, use } = ctx
	const { uid } = agent
	const run_id = newRunId()
	// The start of a run by an agent does not count toward `runs_per_day`, only its tokens do: results must not get lost.
	const cause = causeNow()
	const counted = use('usage').start(run_id, agent, cause?.actor.kind === 'agent' ? undefined : cause?.payer)
	const repeated =
		request.idempotency_key === undefined ? null : repetition(store, uid, request.idempotency_key, request)

	// The index is in another scope, so it is a separate write. If only one of both succeeds, no caller received the run's id.
	let indexed: Promise<unknown> | undefined

	const decide = async (): Promise<Decision<{ run: RunRecord; isNew: boolean }>> => {
		const earlier = await repeated?.find()
		if (earlier) return { result: { run: earlier, isNew: false } }
		const queue = await store.get<ConversationQueue>(keys.queue(uid, request.conversation))
		const ahead = queue?.value.runs ?? []
		// A run with a parent is exempt: the plugin that starts sub-agents limits them, and their results must not get lost.
		await checkQueueLimits(uid, ahead.length, request)
		const parent = request.parent && (await parentOf(store, uid, request.parent.run_id))
		const adopted = parent && adopt(parent, run_id)
		const run: RunRecord = {
			...makeRecord(run_id, agent, request, ahead.length > 0),
			// A run that another run started belongs to the same request.
			...(parent ? defined({ request_id: parent.value.request_id }) : requestOrigin()),
			...(parent?.value.payer && { payer: parent.value.payer }),
			...(parent && { caller: callerOf(parent.value) }),
			...(adopted && { family: adopted.family }),
		}
		const ops: Op[] = [
			...(adopted?.ops ?? []),
			{ key: keys.run(uid, run_id), value: run, expect: null },
			{ key: keys.turn(uid, run.conversation, run_id), value: {} },
			{ key: keys.queue(uid, run.conversation), value: { runs: [...ahead, run_id] }, expect: queue?.rev ?? null },
		]
		if (request.given) ops.push({ key: keys.given(uid, run_id), value: request.given, expect: null })
		if (repeated) ops.push(await repeated.op(run_id))
		ops.push(...(await usesOf(use('attachments').blobs, uid, run_id, request)))
		ops.push(...(await counted.ops()))
		if (request.also) ops.push(...(await request.also(run_id)))
		indexed ??= store.put(keys.index(run_id), { agent: agent.name, uid })
		indexed.catch(() => {}) // awaited below, unless the commit fails first
		return { ops, result: { run, isNew: true } }
	}
	let isStarted = false
	try {
		const taken = await untilNoConflict(decide, async ({ ops = [], result }) => {
			if (result.isNew && result.run.status === 'started')
				await begin(ctx, result.run, { ops, given: request.given, execute: (run) => executeNow(ctx, run) })
			else if (ops.length > 0) await store.commit(agentScope(uid), ops)
			isStarted = result.isNew
			return result
		})
		await indexed
		return taken
	} finally {
		counted.end(isStarted)
	}
}

/** The writes by which the run keeps the blobs of its prompt, and the newest ones of the caller's messages. */
async function usesOf(
	blobs: Blobs,
	uid: string,
	run_id: string,
	{ attachments = [], given }: Pick<StartRequest, 'attachments' | 'given'>,
): Promise<Op[]> {
	const messages = [...(given?.history ?? []), ...(given?.since ?? [])].toReversed()
	const along = messages.flatMap((message) => (message.role === 'assistant' ? [] : (message.attachments ?? [])))
	if (attachments.length + along.length === 0) return []
	const { ops, missing } = await blobs.use(uid, run_id, [...attachments, ...along])
	if (attachments.some(({ blob }) => missing.includes(blob)))
		throw new Fault('unavailable', 'an attachment was deleted before the run was started; send it again')
	return ops
}

/** A stopped or failed run may start no runs, since those that it started are stopped with it. */
async function parentOf(store: Store, uid: string, run_id: string): Promise<Entry<RunRecord>> {
	const entry = await store.get<RunRecord>(keys.run(uid, run_id))
	if (!entry) throw new Fault('not_found', `there is no run "${run_id}" of this agent`)
	if (entry.value.status === 'stopped' || entry.value.status === 'failed')
		throw new Fault('stopped', `run ${run_id} has ended (${entry.value.status}), so it cannot start other runs`)
	return entry
}

function makeRecord(
	run_id: string,
	agent: AgentRef,
	request: StartRequest & { conversation: string },
	waits: boolean,
): RunRecord {
	const at = now()
	const { actor, payer } = causeNow() ?? {}
	return {
		run_id,
		agent: agent.name,
		agent_uid: agent.uid,
		conversation: request.conversation,
		status: waits ? 'queued' : 'started',
		trigger: request.trigger,
		...(actor && { actor }),
		...(payer && { payer }),
		prompt: request.prompt,
		...(request.attachments?.length && { attachments: request.attachments }),
		...(request.origin && { origin: request.origin }),
		...(request.place !== undefined && { place: request.place.slice(0, 500) }),
		...(request.destination && request.destination.deliver !== 'none' && { destination: request.destination }),
		...(request.persona !== undefined && { persona: request.persona }),
		...(request.parent && { parent: request.parent }),
		...(request.tools && { tools: request.tools }),
		...(request.limits && { limits: request.limits }),
		...(request.given && { given: true }),
		...(request.given?.since?.length && { goes_on: true }),
		created_at: at,
		started_at: waits ? null : at,
		ended_at: null,
		answer: null,
		usage: { input_tokens: 0, output_tokens: 0 },
		error: null,
		question: null,
		active_ms: 0,
	}
}

/** Prefixes of the gateway's own idempotency keys. */
const OWN = /^(heartbeat|retry|said|summary):/

/** Prefixes the key of an API caller if it could collide with one of the gateway. */
export function keyOfCaller(key: string): string {
	return OWN.test(key) ? `api:${key}` : key
}

/** Finds the run of an idempotency key, and writes the key of a new run. */
export function repetition(store: Store, uid: string, key: string, request: StartRequest) {
	const place = keys.idempotency(uid, hash('sha256', key))
	const { prompt, trigger, persona, parent, tools, given, attachments, conversation } = request
	// Fields that version 0.1.0 did not have are hashed only if they are set, so that its digests remain valid.
	const added = attachments?.length ? [given ?? null, attachments] : given ? [given] : []
	// Only a named conversation: a reset changes the id of the session, but not the request.
	const named = conversation !== undefined && isNamed(conversation) ? [{ conversation }] : []
	const body = hash('sha256', JSON.stringify([prompt, trigger, persona, parent?.run_id, tools, ...added, ...named]))
	return {
		async find(): Promise<RunRecord | undefined> {
			const entry = await store.get<IdempotencyRecord>(place)
			if (!entry || Date.parse(entry.value.at) <= Date.now() - IDEMPOTENCY_MS) return undefined
			if (entry.value.body !== body) {
				throw new Fault(
					'idempotency_mismatch',
					'this idempotency-key was used with another body in the last 24 hours; use a new key for a new request',
				)
			}
			return await readRun(store, uid, entry.value.run_id)
		},
		async op(run_id: string): Promise<Op> {
			const entry = await store.get(place)
			return { key: place, value: { run_id, body, at: now() } satisfies IdempotencyRecord, expect: entry?.rev ?? null }
		},
	}
}
