/** The tables of the data file, and their keys. Code that reads the file without LMDB imports this file, so it must not import LMDB. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Database } from 'lmdb'
import { keyAfter } from '../keys.ts'

/** A table's keys are strings, sorted by their UTF-8 bytes; its values are bytes. */
export type Table = Database<Buffer, string>

/**
 * - `meta`: the format, and the last revision that is reserved
 * - `records`: the store, by joined key
 * - `log`: one record per append, by the cursor of its last entry
 * - `runs`, `agents`: run or agent, NUL, cursor: which records of the log are theirs; without values
 * - `jobs`: the queue, by place in it, NUL, id
 * - `tries`: by place in the queue: how often a job was handed out, and the earliest time of the next attempt
 */
export const tableNames = ['meta', 'records', 'log', 'runs', 'agents', 'jobs', 'tries'] as const

export type Tables = Record<(typeof tableNames)[number], Table>

/** Tables whose values are sealed records; those of the others are empty. */
export const sealedTables: readonly string[] = ['meta', 'records', 'log', 'jobs', 'tries'] satisfies (keyof Tables)[]

export const dataFile = 'data.mdb'
export const lockFile = 'lock.mdb'

const digits = 11

/** A whole number below 2^53 as a key that sorts as the number does. */
export function numberKey(value: number): string {
	return value.toString(36).padStart(digits, '0')
}

/** The number of a `numberKey`. */
export function keyNumber(key: string): number {
	return Number.parseInt(key, 36)
}

export interface KeyRange {
	/** The first key; with `reverse`, all keys are below it. */
	start: string
	/** All keys are below it; with `reverse`, the last key. */
	end: string
	reverse?: boolean
}

/** At most `limit` keys of a range. */
export function keysOf(table: Table, { start, end, reverse = false }: KeyRange, limit: number): string[] {
	return [...table.getKeys({ start, end, limit, reverse, exclusiveStart: reverse, inclusiveEnd: reverse })]
}

/**
 * The keys of a range, `size` at a time. Yields to other work between two batches; throws `unavailable` if the store was
 * closed meanwhile.
 */
export async function* keyBatches(
	{ table, writer }: { table: Table; writer: { mustBeOpen(): void } },
	range: KeyRange,
	size: number,
): AsyncGenerator<string[]> {
	let { start } = range
	for (;;) {
		writer.mustBeOpen()
		const keys = keysOf(table, { ...range, start }, size)
		yield keys
		if (keys.length < size) return
		const last = keys.at(-1) as string
		start = range.reverse ? last : keyAfter(last)
		await turn()
	}
}
