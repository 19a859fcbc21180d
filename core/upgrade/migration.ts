/**
 * The contract for migrations: the default export of `plugins/<name>/migrations.ts` is a list of them. A migration rewrites
 * records that earlier versions stored in another shape, so that no other code depends on that shape. Migrations run before
 * plugins start, even if their plugin is switched off.
 *
 * A released migration is never changed. A further change raises `format` (core/store/format.ts) and gets a migration of its
 * own. Migrations of one format do not depend on each other.
 *
 * On a cluster the data keeps the older format for a while (`mayUpgrade` of core/store/ports.ts). So until `oldestWritten` is
 * the new format, code that reads the new shape also reads the older one, and code that writes uses the format that
 * `ctx.gateway.dataFormat()` returns.
 */
import { agentScope, agentsIn } from '../store/agent-scope.ts'
import type { Entry, Key, Op, Store } from '../store/ports.ts'

export type Reader = Pick<Store, 'get' | 'list' | 'keys'>

export interface Migration {
	/** Unique and permanent, such as `skills-as-bytes`. */
	name: string
	/** What it rewrites, for the log and the progress: a few words, such as `skills`. */
	about: string
	/** From this format on, the old shape does not occur. */
	format: number
	/** Which records it reads. Must return the same places in the same order, also in the middle of an upgrade. */
	places(store: Reader): AsyncIterable<RecordRange> | Iterable<RecordRange>
	/**
	 * The writes for at most 40 records of one place: at most 100 writes in one scope, no key twice. After a crash it is called
	 * again for converted records, for which it must return no writes. Each scope is a separate commit, so one may become
	 * durable without the others.
	 */
	convert(entries: readonly Entry<unknown>[], store: Reader): Promise<Op[]> | Op[]
}

/** The records under `prefix`, in order, or with `reverse` from the last one. */
export interface RecordRange {
	prefix: Key
	reverse?: boolean
}

/** The writes that add these fields to the records that lack one of them. */
export function addFields(entries: readonly Entry<unknown>[], fields: object): Op[] {
	return (entries as Entry<object>[]).flatMap(({ key, value, rev }): Op[] =>
		Object.keys(fields).every((name) => name in value) ? [] : [{ key, value: { ...fields, ...value }, expect: rev }],
	)
}

/** The records under these parts of the scope of each agent that is not being deleted. */
export async function* ofEachAgent(
	store: Reader,
	...places: readonly (readonly string[])[]
): AsyncGenerator<RecordRange> {
	for await (const { uid } of agentsIn(store)) for (const parts of places) yield { prefix: [agentScope(uid), ...parts] }
}
