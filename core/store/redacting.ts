/** The store and the queue as plugins get them: values are redacted before they are stored. */
import type { Redactor, View } from '../redactor/redactor.ts'
import { timeOfId } from '../util/ids.ts'
import { fieldsOf } from '../util/is-object.ts'
import { agentIn } from './agent-scope.ts'
import { withSingleWrites } from './ops.ts'
import type { Op, RunQueue, Store } from './ports.ts'

/**
 * Fields of the gateway's own records that name their owner. They are not redacted: a secret that equals an agent's name must
 * not separate the agent from its records. Such a record has the agent's uid. In other records, these fields may be a model's
 * words, such as the keys of its notes.
 */
const ownerFields = ['agent', 'agent_id', 'agent_uid', 'uid', 'conversation', 'run_id']

/** Redacts values when they are written, but not keys. */
export function redactingStore(store: Store, redactor: Redactor): Store {
	return withSingleWrites({
		...store,
		commit(scope, ops) {
			const uid = agentIn(scope)
			const own = uid === undefined ? undefined : redactor.of([{ uid }])
			return store.commit(
				scope,
				ops.map((op) => redactedOp(own ?? viewFor(redactor, op.value), op)),
			)
		},
	})
}

/** Returns the same op if nothing in it is redacted. */
export function redactedOp(view: View, op: Op): Op {
	if (op.check) return op
	const value = redactedRecord(view, op.value)
	return value === op.value ? op : { ...op, value }
}

function redactedRecord<T>(view: View, value: T): T {
	return withOwners(view.data(value, 'record'), value)
}

/** Redacts the bodies of jobs when they are added. */
export function redactingQueue(queue: RunQueue, redactor: Redactor): RunQueue {
	return {
		...queue,
		enqueue: (job) => {
			const body = redactedRecord(viewFor(redactor, job.body), job.body)
			return queue.enqueue({ ...job, body })
		},
	}
}

/** The view of the agent whose uid a record outside agent scopes contains, else that of the gateway. */
function viewFor(redactor: Redactor, value: unknown): View {
	const uid = uidIn(value)
	return redactor.of([uid === undefined ? 'gateway' : { uid }])
}

function uidIn(value: unknown): string | undefined {
	const { agent_uid, uid } = fieldsOf(value)
	const named = agent_uid ?? uid
	return typeof named === 'string' && timeOfId(named) !== undefined ? named : undefined
}

function withOwners<T>(cleaned: T, value: T): T {
	if (cleaned === value || typeof cleaned !== 'object' || Array.isArray(cleaned)) return cleaned
	if (uidIn(value) === undefined) return cleaned
	const fields = value as Record<string, unknown>
	const kept = ownerFields.filter((name) => Object.hasOwn(fields, name)).map((name) => [name, fields[name]])
	return { ...cleaned, ...Object.fromEntries(kept) }
}
