import { isFault } from '../errors.ts'
import type { Key, Op, Store } from './ports.ts'

/** What `decide` wants to write, and what `change` then returns. */
export interface Decision<T> {
	/** One commit, at most 100 writes. Each expects the revision that `decide` read. Absent or empty: nothing is written. */
	ops?: Op[]
	result: T
}

interface Changed<V, T> extends Decision<T> {
	next?: V | undefined
}

const ATTEMPTS = 100

/**
 * Reads, decides and commits in one scope, and retries after a conflict with another commit.
 *
 * `decide` reads what it needs. It may be called several times, so its effects must be repeatable. An error that it throws
 * ends the change, and nothing is written. Returns `result` once the writes are durable. Throws `conflict` after 100
 * attempts, and any other error of a commit at once.
 */
export async function change<T>(
	store: Pick<Store, 'commit'>,
	scope: string,
	decide: () => Decision<T> | Promise<Decision<T>>,
): Promise<T> {
	return untilNoConflict(decide, async ({ ops = [], result }) => {
		if (ops.length > 0) await store.commit(scope, ops)
		return result
	})
}

/**
 * The same for one record: `decide` gets its value and returns the `next` one; if that is absent, the record is not written.
 * `ops`: further writes of the same commit.
 */
export function changeRecord<V, T = void>(
	store: Pick<Store, 'get' | 'commit'>,
	key: Key,
	decide: (value: V | undefined) => Changed<V, T> | Promise<Changed<V, T>>,
): Promise<T> {
	return change(store, key[0], async () => {
		const entry = await store.get<V>(key)
		const { next, ops = [], result } = await decide(entry?.value)
		return { ops: next === undefined ? ops : [...ops, { key, value: next, expect: entry?.rev ?? null }], result }
	})
}

/** Like `change`, with any way to write the decision, such as an append to the log. */
export async function untilNoConflict<D, T>(
	decide: () => D | Promise<D>,
	write: (decision: D) => Promise<T>,
): Promise<T> {
	for (let attempt = 1; ; attempt++) {
		const decision = await decide()
		try {
			return await write(decision)
		} catch (error) {
			if (!isFault(error, 'conflict') || attempt === ATTEMPTS) throw error
		}
	}
}
