/**
 * The contract for migrations: the default export of `plugins/<name>/migrations.ts` is a list of them. A migration rewrites
 * records that earlier versions stored in another shape, so that no other code has to know that shape. They run before plugins
 * start, whether or not their plugin is switched on.
 *
 * A released migration is never changed. A further change raises `format` (core/store/format.ts) and gets a migration of its
 * own. Migrations of one format do not depend on each other.
 *
 * On a cluster the data keeps the older format for a while (`mayUpgrade` of core/store/ports.ts). So code that reads a record of the new shape also
 * reads the older one, and code that writes asks `ctx.gateway.dataFormat()` which one to write, until `oldestWritten` is the new format.
 */
import { agentScope, agentsIn } from '../store/agent-scope.ts'
import type { Entry, Key, Op, Store } from '../store/ports.ts'

export type Reader = Pick<Store, 'get' | 'list' | 'keys'>

export interface Migration {
	/** Unique and permanent, such as `skills-as-bytes`. */
	name: string
	/** What it rewrites, for the log and for people: a few words, such as `skills`. */
	about: string
	/** The format from which on nothing is left of the old shape. */
	format: number
	/** Which records it reads. The same places in the same order, however often it is asked in the middle of an upgrade. */
	places(store: Reader): AsyncIterable<RecordRange> | Iterable<RecordRange>
	/**
	 * The writes for some records of one place: at most 40 at a time, at most 100 writes in one scope, no key twice. After a crash
	 * it is called again for records that it has converted, and then has nothing to write for them. Each scope is a commit of
	 * its own, so one may become durable without the others.
	 */
	convert(entries: readonly Entry<unknown>[], store: Reader): Promise<Op[]> | Op[]
}

/** The records under `prefix`, in order, or with `reverse` from the last one. */
export interface RecordRange {
	prefix: Key
	reverse?: boolean
}

/** The records under these parts of the scope of each agent that is not being deleted. */
export async function* ofEachAgent(
	store: Reader,
	...places: readonly (readonly string[])[]
): AsyncGenerator<RecordRange> {
	for await (const { uid } of agentsIn(store)) for (const parts of places) yield { prefix: [agentScope(uid), ...parts] }
}
