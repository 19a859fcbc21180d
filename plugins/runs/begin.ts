/** The beginning of a run: its first events, and for a run that need not wait its record and its job, in one write. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Fault } from '../../core/errors.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { causedBy } from '../../core/util/context.ts'
import type { Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'
import { openRun } from './run-log.ts'
import type { RunLog } from './run-log.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Op, RecordChange } from '../../core/store/ports.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { RunInputs, RunRecord, RunSettings } from './contract.ts'
import { enqueue } from './ending.ts'
import { originIn } from './journal.ts'
import { aboutRun } from './preamble.ts'
import type { AboutRun } from './preamble.ts'
import { jobOf } from './records.ts'

/** A run that executes while its beginning is being written. */
export interface Begun {
	run: RunRecord
	/** Whatever is appended to it becomes durable after the beginning. */
	log: RunLog
	/** What its caller sent along, redacted as the store has it once it is `written`. */
	given: RunInputs | undefined
	/** As in the journal. */
	about: string | undefined
	/** False if the run could not be stored: then there is no such run, and its caller got the error. */
	isWritten: Promise<boolean>
	/** It was not stored, so no model needs to be asked. */
	isRefused: boolean
}

/** Runs that wait for a place and are kept in memory. */
const LIMIT = 256
const begun = new Map<string, Begun>()
/** Further runs that wait: of these only the ids are kept, and the rest is read once they have a place. Beyond them, a run gets a job. */
const IDS_LIMIT = 10_000
const unread = new Set<string>()

/** What is known of a run that this process has just begun, once. Undefined if it must be read, as when its log was taken over. */
export function takeBegun(run_id: string): Begun | undefined {
	unread.delete(run_id)
	const one = begun.get(run_id)
	begun.delete(run_id)
	return one?.log.closed ? undefined : one
}

/** Whether this process has just begun the run, and executes it once there is a place. */
export function isBegun(run_id: string): boolean {
	return begun.has(run_id) || unread.has(run_id)
}

/** What plugins were already asked to say about a run that begins later. */
const abouts = new BoundedMap<string, Promise<AboutRun | undefined>>(LIMIT)

export function takeAbout(run_id: string): Promise<AboutRun | undefined> | undefined {
	const about = abouts.get(run_id)
	abouts.delete(run_id)
	return about
}

interface RunBeginning {
	ops: Op[]
	given: RunInputs | undefined
	execute(run: RunRecord): void
}

/** By agent: what `begin` is writing. */
const writing = new Map<string, Set<Promise<void>>>()

/** Settles once the runs of this agent that execute already are stored, or were refused. */
export async function untilBegun(agent_uid: string): Promise<void> {
	const all = writing.get(agent_uid)
	if (all) await Promise.allSettled(all)
}

/**
 * Writes `ops`, which make the record of the run, with its first events. Execution begins once this write has been handed to
 * the disk: the model may be asked before it is durable, but nothing of the run is shown. Throws `conflict` if an expectation
 * does not hold; then the execution ends without a trace.
 */
export async function begin(ctx: Context<RunSettings>, run: RunRecord, start: RunBeginning): Promise<void> {
	const { agent_uid } = run
	const all = writing.get(agent_uid) ?? new Set()
	const written = write(ctx, run, start)
	writing.set(agent_uid, all.add(written))
	try {
		await written
	} finally {
		all.delete(written)
		if (all.size === 0) writing.delete(agent_uid)
	}
}

async function write(ctx: Context<RunSettings>, run: RunRecord, { ops, given, execute }: RunBeginning): Promise<void> {
	const { run_id, agent_uid } = run
	const agent = await ctx.use('agents').find(run.agent)
	// It is being deleted, and its runs are stopped.
	if (agent?.uid !== agent_uid) return void (await ctx.store.commit(agentScope(agent_uid), ops))
	const asked = aboutRun(ctx, run, agent)
	if (!(await Promise.race([asked.then(() => true), nextTurn(false)]))) {
		// A plugin takes its time, for which the caller need not wait.
		await ctx.store.commit(agentScope(agent_uid), ops)
		abouts.set(run_id, asked)
		return enqueue(ctx, jobOf(run))
	}
	const about = await asked
	const log = await openRun(ctx.events, { run_id, agent_id: run.agent }, true)
	const written = writeBeginning(log, { run, agent, about }, once(agent_uid, ops))
	// As the store will have it, whose write reports what is redacted.
	const safe = given && log.redactor.reportingTo(() => {}).data(given, 'record')
	const isWritten = written.then(
		() => true,
		() => false,
	)
	const one: Begun = { run, log, given: safe, about: about?.content, isWritten, isRefused: false }
	const isKept = begun.size < LIMIT
	if (isKept) {
		begun.set(run_id, one)
		// The write goes to the disk at the end of this turn of the event loop, and takes longer than the rest: so execution follows it.
		setImmediate(() => setImmediate(() => one.isRefused || execute(run)))
	}
	try {
		await written
	} catch (error) {
		one.isRefused = true
		begun.delete(run_id)
		void ctx.pool.running(run_id)?.abort('the run could not be stored')
		throw error
	} finally {
		if (!isKept) log.close()
	}
	if (isKept) return
	// Not before: without its record there is nothing to execute.
	if (unread.size >= IDS_LIMIT) return enqueue(ctx, jobOf(run))
	unread.add(run_id)
	execute(run)
}

/** Appends the first events of a run, and `about` for its journal. */
export function writeBeginning(
	log: RunLog,
	{ run, agent, about }: { run: RunRecord; agent: AgentRecord; about: AboutRun | undefined },
	change?: RecordChange,
): Promise<void> {
	const { trigger, conversation, parent, request_id, traceparent, actor, prompt, attachments } = run
	const payload = {
		trigger,
		conversation,
		...(parent && { parent_run_id: parent.run_id }),
		...(request_id !== undefined && { request_id }),
		...(traceparent !== undefined && { traceparent }),
		...(actor && { actor }),
	}
	const events: NewEvent[] = [...originIn(log, run), { event_type: 'run.started', payload }]
	const persona = run.persona ?? agent.persona
	if (persona) events.push({ event_type: 'message.system', payload: { content: persona } })
	events.push({ event_type: 'message.user', payload: { content: prompt, ...(attachments && { attachments }) } })
	if (about) events.push(...about.events)
	const append = () => log.append(events, about && { kind: 'about', content: about.content }, change)
	// A run that waited behind others begins in the course of theirs.
	return actor ? causedBy({ actor }, append) : append()
}

/** Whether the log has the first events of the run, and no sign that it was executed. */
export function isAtBeginning({ journal: { lastEvent, steps } }: RunLog): boolean {
	const isExecuted = /^(run|model|context)\./.test(lastEvent?.event_type ?? 'run.')
	return !isExecuted && steps.every(({ kind }) => kind === 'about')
}

/** After a conflict the caller decides anew. */
function once(uid: string, ops: Op[]): RecordChange {
	let isAsked = false
	return {
		scope: agentScope(uid),
		ops() {
			if (isAsked) return Promise.reject(new Fault('conflict', 'the conversation has changed meanwhile'))
			isAsked = true
			return Promise.resolve(ops)
		},
	}
}
