/** The store and the queue as plugins get them: what they keep holds no secret. */
import type { Redactor } from '../redactor.ts'
import type { RunQueue, Store } from './ports.ts'

/**
 * What a record of the gateway's own says it belongs to. A secret that happens to be part of an agent's name must not cut
 * its runs off from it. Such a record carries the agent's uid; without one these may be words of a model's, such as the keys
 * of its notes.
 */
const belonging = ['agent', 'agent_id', 'agent_uid', 'uid', 'conversation', 'run_id']
const UID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Values are cleaned, keys are not. What is read is what was written. */
export function redactingStore(store: Store, redactor: Redactor): Store {
	const clean = (value: unknown): unknown => withOwners(redactor.data(value, 'record'), value)
	return {
		get: (key) => store.get(key),
		put: (key, value) => store.put(key, clean(value)),
		create: (key, value) => store.create(key, clean(value)),
		update: (key, value, expect) => store.update(key, clean(value), expect),
		delete: (key, expect) => store.delete(key, expect),
		list: (prefix, options) => store.list(prefix, options),
		commit: (scope, ops) =>
			store.commit(scope, redactor.active ? ops.map((op) => ({ ...op, value: clean(op.value) })) : ops),
		watch: (prefix, changed) => store.watch(prefix, changed),
	}
}

function withOwners<T>(cleaned: T, value: T): T {
	if (cleaned === value || typeof cleaned !== 'object' || Array.isArray(cleaned)) return cleaned
	const fields = value as Record<string, unknown>
	if (!UID.test(String(fields.agent_uid ?? fields.uid))) return cleaned
	const kept = belonging.filter((name) => Object.hasOwn(fields, name)).map((name) => [name, fields[name]])
	return { ...cleaned, ...Object.fromEntries(kept) }
}

export function redactingQueue(queue: RunQueue, redactor: Redactor): RunQueue {
	return {
		enqueue: (job) => queue.enqueue({ ...job, body: withOwners(redactor.data(job.body, 'record'), job.body) }),
		claim: (max, signal) => queue.claim(max, signal),
		waiting: () => queue.waiting(),
	}
}
