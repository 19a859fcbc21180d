/** Making and deleting heartbeats, also by calls that are made again after a crash. */
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
	const told: string[] = []
	const agents = {
		find: async (name: string) => [ada, bob].map((one) => ({ ...one, config: {} })).find((one) => one.name === name),
	}
	const runs = { forgetNotes: async () => {}, destination: async () => ({ deliver: 'none' }) }
	return {
		told,
		/** As when it has beaten for the last time. */
		async end(id: string): Promise<void> {
			const entry = await store.get<HeartbeatRecord>(keys.heartbeat(ada.uid, id))
			if (!entry || !(await endRecord(store, ada.uid, id, entry.rev))) throw new Error(`no heartbeat ${id}`)
		},
		heartbeats: heartbeatsOf({
			store,
			config: { max_per_agent, missed_grace_s: 0 },
			emit: async ({ event_type }) => void told.push(event_type),
			use: ((name: string) => (name === 'runs' ? runs : agents)) as never,
		}),
	}
}

void t.test('a creation that is made again answers with what the first one made', async (t) => {
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
	t.equal((await heartbeats.list(ada)).length, 1, 'of another agent')
})

void t.test('a reminder is not set a second time by a call that is repeated after it has fired', async (t) => {
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

void t.test('a call that is repeated once its time has passed answers with what it made', async (t) => {
	const { heartbeats } = open()
	const call = { key: 'run:1:call', emit: (): void => {} }
	const first = await heartbeats.create(ada, { at: 'in 1 hour', prompt: 'tea' }, call)
	const passed = { at: '2020-01-01T09:00:00Z', prompt: 'tea' }
	t.strictSame(await heartbeats.create(ada, passed, call), first)
	await t.rejects(heartbeats.create(ada, passed, { ...call, key: 'run:2:call' }), { message: /in the past/ })
})

void t.test('a change that is repeated moves a reminder no further, also after it has fired', async (t) => {
	const { heartbeats, end } = open()
	const call = { key: 'run:1:call', emit: (): void => {} }
	const { id } = await heartbeats.create(ada, { at: 'in 1 hour', prompt: 'tea' })
	const first = await heartbeats.change(ada, id, { at: 'in 20 minutes' }, call)
	const started = Date.now()
	await eventually(() => Date.now() > started) // so that the same words mean another time
	t.strictSame(await heartbeats.change(ada, id, { at: 'in 20 minutes' }, call), first)
	t.notOk('changed_by' in first)
	await end(id)
	t.match(await heartbeats.change(ada, id, { at: 'in 20 minutes' }, call), { id, at: first.at, next_at: null })
	await t.rejects(heartbeats.change(ada, id, { at: 'in 20 minutes' }, { ...call, key: 'run:2:call' }), {
		code: 'not_found',
	})
	t.strictSame(await heartbeats.list(ada), [])
})

void t.test('a deletion that is made again answers as the first one, another one finds nothing', async (t) => {
	const { heartbeats } = open()
	const told: string[] = []
	const emit = ({ event_type }: { event_type: string }): void => void told.push(event_type)
	const { id } = await heartbeats.create(ada, { every: '1h', prompt: 'hello' })
	await t.rejects(heartbeats.remove(bob, id, { key: 'k', emit }), { code: 'not_found' })
	await heartbeats.remove(ada, id, { key: 'k', emit })
	await heartbeats.remove(ada, id, { key: 'k', emit })
	t.strictSame(told, ['heartbeat.deleted'])
	await t.rejects(heartbeats.remove(ada, id, { key: 'other', emit }), { code: 'not_found' })
	await t.rejects(heartbeats.remove(ada, id), { code: 'not_found' })
})

void t.test('the limit holds, also for many at once, and room comes back', async (t) => {
	const { heartbeats, told } = open(5)
	const outcomes = await Promise.all(
		Array.from({ length: 30 }, () =>
			heartbeats.create(ada, { every: '1h', prompt: 'hello' }).then(
				({ id }) => id,
				(error: unknown) => (isFault(error, 'conflict') ? null : Promise.reject(error)),
			),
		),
	)
	const made = outcomes.filter((id) => id !== null)
	t.equal(made.length, 5)
	t.equal((await heartbeats.list(ada)).length, 5)
	await Promise.all(made.map((id) => heartbeats.remove(ada, id)))
	t.strictSame(await heartbeats.list(ada), [])
	for (let n = 0; n < 5; n++) await heartbeats.create(ada, { every: '1h', prompt: 'hello' })
	await t.rejects(heartbeats.create(ada, { every: '1h', prompt: 'hello' }), {
		code: 'conflict',
		message: /max_per_agent/,
	})
	t.equal(told.filter((type) => type === 'heartbeat.created').length, 10)
})
