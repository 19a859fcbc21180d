/** Rules common to every engine's event log: what may be appended, what a filter matches, what a cursor is. */
import { Fault } from '../errors.ts'
import { fieldsOf } from '../util/is-object.ts'
import { matches } from '../util/pattern.ts'
import { untilNoConflict } from './change.ts'
import { invalid, isName, maxNameBytes } from './keys.ts'
import { checkOps } from './ops.ts'
import type { CheckedOp } from './ops.ts'
import type { Cursor, EventEnvelope, EventLog, LogEntry, LogFilter } from './ports.ts'

/** Appends checked entries, at least one, and writes the records with them. */
export type AppendOnce = (
	run: string | null,
	expectedLast: number,
	entries: LogEntry[],
	records: CheckedOp[],
) => Promise<Cursor[]>

/** The `append` of an engine's log. An append with a change of records is retried after a conflict. */
export function appendBy(appendOnce: AppendOnce): EventLog['append'] {
	return async (run, expectedLast, entries, change) => {
		checkEntries(run, expectedLast, entries)
		if (entries.length === 0) return []
		if (!change) return appendOnce(run, expectedLast, entries, [])
		return untilNoConflict(
			() => change.ops(),
			async (ops) => appendOnce(run, expectedLast, entries, checkOps(change.scope, ops)),
		)
	}
}

/** Throws `invalid_request` if the entries are not those of `run`, or their sequences do not rise above `expectedLast`. */
export function checkEntries(run: string | null, expectedLast: number, entries: readonly LogEntry[]): void {
	if (run !== null) checkName('run', run)
	let last = expectedLast
	let agent: string | null = null
	let timestamp: string | undefined
	for (const { event } of entries) {
		if (event.run_id !== run) throw invalid(`an event of the run ${event.run_id} cannot be appended to the run ${run}`)
		// The events of one append usually have the same agent and time, which are checked once.
		if (event.agent_id !== null && event.agent_id !== agent) checkName('agent', event.agent_id)
		if (event.timestamp !== timestamp && !(Date.parse(event.timestamp) >= 0))
			throw invalid(`"${event.timestamp}" is not an ISO 8601 timestamp`)
		agent = event.agent_id
		timestamp = event.timestamp
		if (run === null) continue
		if (!Number.isSafeInteger(event.sequence) || event.sequence <= last)
			throw invalid(`the sequence ${event.sequence} must be a whole number above ${last}`)
		last = event.sequence
	}
}

/** The error of a writer whose append expects a different sequence than the last one of the run. */
export function fenced(run: string, expectedLast: number, last: number): Fault {
	return new Fault(
		'fenced',
		`the log of run ${run} is at sequence ${last}, not at ${expectedLast}: another writer has taken over this run`,
	)
}

/** The position of a cursor. Throws `invalid_request` for one that this log never returned. */
export function positionOf(cursor: Cursor, head: number): number {
	if (!isPosition(cursor, String(head))) throw invalid(`"${cursor}" is not a position in this log`)
	return Number(cursor)
}

/** Whether this cursor is valid in a log whose newest position is `head`. */
export function isPosition(cursor: string, head: Cursor): boolean {
	return /^(0|[1-9]\d{0,15})$/.test(cursor) && Number(cursor) <= Number(head)
}

/** A test for events. Throws `invalid_request` for invalid times. */
export function matcher(filter: LogFilter): (event: EventEnvelope) => boolean {
	const { agent_id, run_id, agents, types, actor } = filter
	const since = timeOf(filter.since, Number.NEGATIVE_INFINITY)
	const until = timeOf(filter.until, Number.POSITIVE_INFINITY)
	const timed = filter.since !== undefined || filter.until !== undefined
	return (event) => {
		if (agent_id !== undefined && event.agent_id !== agent_id) return false
		if (run_id !== undefined && event.run_id !== run_id) return false
		if (agents && !agents.some((pattern) => event.agent_id !== null && matches(pattern, event.agent_id))) return false
		if (types && !types.some((type) => isOfType(event.event_type, type))) return false
		if (actor !== undefined && nameOfActor(event.payload.actor) !== actor) return false
		if (!timed) return true
		const time = Date.parse(event.timestamp)
		return time >= since && time < until
	}
}

function nameOfActor(actor: unknown): unknown {
	const { id, kind } = fieldsOf(actor)
	return id ?? kind
}

/** Milliseconds since 1970, or `absent` if there is no text. Throws `invalid_request` for an invalid time. */
export function timeOf(text: string | undefined, absent: number): number {
	if (text === undefined) return absent
	const time = Date.parse(text)
	if (Number.isNaN(time)) throw invalid(`"${text}" is not an ISO 8601 timestamp`)
	return time
}

/** True if `type` is `wanted`, or belongs to that family (`message.*`, `*`). */
export function isOfType(type: string, wanted: string): boolean {
	return type === wanted || wanted === '*' || (wanted.endsWith('.*') && type.startsWith(wanted.slice(0, -1)))
}

function checkName(kind: string, name: string): void {
	if (!isName(name)) throw invalid(`the ${kind} of an event needs a name of 1 to ${maxNameBytes} bytes without NUL`)
}
