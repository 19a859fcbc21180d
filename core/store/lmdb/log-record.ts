/** One append as one record of the log. */
import { Fault } from '../../errors.ts'
import { entriesOf, rowOf } from '../log-rows.ts'
import type { LogRow } from '../log-rows.ts'
import type { LogEntry } from '../ports.ts'
import type { Table, Tables } from './tables.ts'
import { keyNumber, numberKey } from './tables.ts'
import { findRecord, sealValue, valueOf } from './record.ts'
import type { Write } from './writer.ts'

/** The value of an index entry. */
const nothing = Buffer.alloc(0)

export interface LogRecord {
	run: string | null
	/** The run's last sequence before this append: links the records of a run, so that a missing one is detected. */
	before: number
	/** Position of the first entry; the others follow. */
	first: number
	entries: LogEntry[]
}

/** The stamp is the time of the newest event, in milliseconds since 1970. */
export function sealRecord({ run, before, first, entries }: LogRecord): { key: string; bytes: Buffer } {
	const key = numberKey(first + entries.length - 1)
	let newest = 0
	let timestamp: string | undefined
	for (const { event } of entries) {
		if (event.timestamp !== timestamp) newest = Math.max(newest, Date.parse(event.timestamp))
		timestamp = event.timestamp
	}
	return { key, bytes: sealValue(key, newest, [run, before, entries.map(rowOf)]) }
}

/** The record whose last entry has the position `key`, and its size. */
export function readRecord(log: Table, key: string): (LogRecord & { size: number }) | undefined {
	const found = findRecord(log, key)
	if (!found) return undefined
	const size = found.bytes.length
	const [run, before, rows] = valueOf(log, key, found.bytes) as [string | null, number, LogRow[]]
	const entries = entriesOf(run, rows)
	return { run, before, first: keyNumber(key) - entries.length + 1, entries, size }
}

/** For a record that an index entry names. */
export function mustRead(log: Table, key: string): LogRecord & { size: number } {
	const record = readRecord(log, key)
	if (record) return record
	throw new Fault('store_damaged', `the log has lost its record ${keyNumber(key)}: restore a backup`)
}

/** The writes of the record and of its index entries; without `bytes` they remove it. */
export function writesOf(tables: Tables, key: string, { run, entries }: LogRecord, bytes?: Buffer): Write[] {
	const indexed = bytes && nothing
	const writes: Write[] = [{ table: tables.log, key, bytes }]
	if (run !== null) writes.push({ table: tables.runs, key: indexKey(run, key), bytes: indexed })
	for (const agent of new Set(entries.map(({ event }) => event.agent_id)))
		if (agent !== null) writes.push({ table: tables.agents, key: indexKey(agent, key), bytes: indexed })
	return writes
}

/** The run's or the agent's entry in its index. */
export function indexKey(name: string, position: string): string {
	return `${name}\0${position}`
}
