import type { Entry, Key, Op, Store } from '../../core/store/ports.ts'

const COMMIT_LIMIT = 100

/** Deletes the records under `prefix` that are `wanted` (default: all), 100 per commit. May be repeated after a crash. */
export async function deleteAll(
	store: Pick<Store, 'commit' | 'list'>,
	prefix: Key,
	wanted: (entry: Entry<unknown>) => boolean | Promise<boolean> = () => true,
): Promise<void> {
	const ops: Op[] = []
	const flush = async (): Promise<void> => {
		if (ops.length > 0) await store.commit(prefix[0], ops.splice(0))
	}
	for await (const entry of store.list(prefix)) {
		if (!(await wanted(entry))) continue
		ops.push({ key: entry.key, value: undefined })
		if (ops.length === COMMIT_LIMIT) await flush()
	}
	await flush()
}
