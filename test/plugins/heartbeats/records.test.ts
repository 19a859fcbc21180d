/** Creating, changing and deleting heartbeats, also by calls that are repeated after a crash. */
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import { openMemory } from '../../support/memory-engine.ts'
import { heartbeatsOf } from '../../../plugins/heartbeats/heartbeats.ts'
import { endRecord, keys } from '../../../plugins/heartbeats/records.ts'
import type { HeartbeatRecord } from '../../../plugins/heartbeats/records.ts'
import { eventually } from '../../support/wait.ts'

const ada = { name: 'ada', uid: 'u1' }
const bob = { name: 'bob', uid: 'u2' }

function open(max_per_agent = 32) {
	const { store } = openMemory()
	const emitted: string[] = []
	const agents = {
		find: async (name: string) =>
			[ada, bob].map((agent) => ({ ...agent, config: {} })).find((agent) => agent.name === name),
	}
	const runs = { forgetNotes: async () => {}, destination: async () => ({ deliver: 'none' }) }
	return {
		emitted,
		/** Ends a heartbeat as its last beat does. */
		async end(id: string): Promise<void> {
			const entry = await store.get<HeartbeatRecord>(keys.heartbeat(ada.uid, id))
			if (!entry || !(await endRecord(store, ada.uid, id, entry.rev))) throw new Error(`no heartbeat ${id}`)
		},
		heartbeats: heartbeatsOf({
			store,
			config: { max_per_agent, missed_grace_s: 0 },
			emit: async ({ event_type }) => void emitted.push(event_type),
			use: ((name: string) => (name === 'runs' ? runs : agents)) as never,
		}),
	}
}

void t.test('a repeated creation returns the heartbeat of the first one', async (t) => {
	const { heartbeats } = open(1)
	const emit = (): void => {}
	const first = await heartbeats.create(ada, { every: '1h', prompt: 'hello' }, { key: 'run:1:call', emit })
	const again = await heartbeats.create(ada, { every: '1h', prompt: 'hello' }, { key: 'run:1:call', emit })
	t.strictSame(again, first)
	t.strictSame(await heartbeats.list(ada), [first])
	await t.rejects(heartbeats.create(ada, { every: '1h', prompt: 'hello' }, { key: 'run:2:call', emit }), {
		code: 'conflict',
	})
	t.equal((await heartbeats.create(bob, { every: '1h', prompt: 'hello' }, { key: 'run:1:call', emit })).id, first.id)
	t.equal((await heartbeats.list(ada)).length, 1, 'the other agent has its own heartbeat')
})

void t.test('a creation that is repeated after its reminder has fired creates no second one', async (t) => {
	const { heartbeats, end } = open()
	const call = { key: 'run:1:call', emit: (): void => {} }
	const first = await heartbeats.create(ada, { at: 'in 20 minutes', prompt: 'tea' }, call)
	await end(first.id)
	const again = await heartbeats.create(ada, { at: 'in 20 minutes', prompt: 'tea' }, call)
	t.strictSame(again, { ...first, next_at: null })
	t.strictSame(await heartbeats.list(ada), [])
	const other = await heartbeats.create(ada, { at: 'in 20 minutes', prompt: 'tea' }, { ...call, key: 'run:2:call' })
	t.strictSame(await heartbeats.list(ada), [other])
})

void t.test('a creation that is repeated after its time has passed returns its heartbeat', async (t) => {
	const { heartbeats } = open()
	const call = { key: 'run:1:call', emit: (): void => {} }
	const first = await heartbeats.create(ada, { at: 'in 1 hour', prompt: 'tea' }, call)
	const passed = { at: '2020-01-01T09:00:00Z', prompt: 'tea' }
	t.strictSame(await heartbeats.create(ada, passed, call), first)
	await t.rejects(heartbeats.create(ada, passed, { ...call, key: 'run:2:call' }), { message: /in the past/ })
})

void t.test('a repeated change does not move a reminder again, also after it has fired', async (t) => {
	const { heartbeats, end } = open()
	const call = { key: 'run:1:call', emit: (): void => {} }
	const { id } = await heartbeats.create(ada, { at: 'in 1 hour', prompt: 'tea' })
	const first = await heartbeats.change(ada, id, { at: 'in 20 minutes' }, call)
	const started = Date.now()
	await eventually(() => Date.now() > started) // the same words now mean a later time
	t.strictSame(await heartbeats.change(ada, id, { at: 'in 20 minutes' }, call), first)
	t.notOk('changed_by' in first)
	await end(id)
	t.match(await heartbeats.change(ada, id, { at: 'in 20 minutes' }, call), { id, at: first.at, next_at: null })
	await t.rejects(heartbeats.change(ada, id, { at: 'in 20 minutes' }, { ...call, key: 'run:2:call' }), {
		code: 'not_found',
	})
	t.strictSame(await heartbeats.list(ada), [])
})

void t.test('a repeated deletion returns the same as the first one, a different one is not found', async (t) => {
	const { heartbeats } = open()
	const emitted: string[] = []
	const emit = ({ event_type }: { event_type: string }): void => void emitted.push(event_type)
	const { id } = await heartbeats.create(ada, { every: '1h', prompt: 'hello' })
	await t.rejects(heartbeats.remove(bob, id, { key: 'k', emit }), { code: 'not_found' })
	await heartbeats.remove(ada, id, { key: 'k', emit })
	await heartbeats.remove(ada, id, { key: 'k', emit })
	t.strictSame(emitted, ['heartbeat.deleted'])
	await t.rejects(heartbeats.remove(ada, id, { key: 'other', emit }), { code: 'not_found' })
	await t.rejects(heartbeats.remove(ada, id), { code: 'not_found' })
})

void t.test('concurrent creations keep the limit, and deletions make room', async (t) => {
	const { heartbeats, emitted } = open(5)
	const outcomes = await Promise.all(
		Array.from({ length: 30 }, () =>
			heartbeats.create(ada, { every: '1h', prompt: 'hello' }).then(
				({ id }) => id,
				(error: unknown) => (isFault(error, 'conflict') ? null : Promise.reject(error)),
			),
		),
	)
	const created = outcomes.filter((id) => id !== null)
	t.equal(created.length, 5)
	t.equal((await heartbeats.list(ada)).length, 5)
	await Promise.all(created.map((id) => heartbeats.remove(ada, id)))
	t.strictSame(await heartbeats.list(ada), [])
	for (let n = 0; n < 5; n++) await heartbeats.create(ada, { every: '1h', prompt: 'hello' })
	await t.rejects(heartbeats.create(ada, { every: '1h', prompt: 'hello' }), {
		code: 'conflict',
		message: /max_per_agent/,
	})
	t.equal(emitted.filter((type) => type === 'heartbeat.created').length, 10)
})
