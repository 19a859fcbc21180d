import t from 'tap'
import { agentScope, expectingAgents, livenessKey } from '../../../core/store/agent-scope.ts'
import type { Key } from '../../../core/store/ports.ts'
import { openMemory } from '../../support/memory-engine.ts'

const scope = agentScope('u1')
const key: Key = [scope, 'note']
const gone = { code: 'not_found', message: /the agent was deleted/ }

void t.test('in the scope of an existing agent, records work as usual', async (t) => {
	const engine = openMemory()
	const { store: guarded } = expectingAgents(engine)
	await guarded.put(livenessKey('u1'), true)
	const rev = await guarded.put(key, 1)
	t.equal((await guarded.get(key))?.rev, rev)
	const [changed] = await guarded.commit(scope, [{ key, value: 2, expect: rev }])
	await t.rejects(guarded.update(key, 3, rev), { code: 'conflict' })
	await t.rejects(guarded.create(key, 3), { code: 'conflict' })
	t.match(await guarded.get(key), { value: 2, rev: changed })
	const many = Array.from({ length: 100 }, (_, n) => ({ key: [scope, String(n)] as const, value: n }))
	t.equal((await guarded.commit(scope, many)).length, 100)
	await t.rejects(guarded.put(key, undefined), { code: 'invalid_request' })
})

void t.test('nothing is added to the scope of a deleted agent', async (t) => {
	const engine = openMemory()
	const { store } = engine
	const { store: guarded } = expectingAgents(engine)
	await store.put(livenessKey('u1'), true)
	const rev = await guarded.put(key, 1)
	await guarded.delete(livenessKey('u1'))

	await t.rejects(guarded.put([scope, 'new'], 1), gone)
	await t.rejects(guarded.create([scope, 'new'], 1), gone)
	await t.rejects(guarded.put(key, 2), gone, 'nor replaced, since the record may be deleted')
	const both = [
		{ key, value: 2, expect: rev },
		{ key: [scope, 'new'] as const, value: 1, expect: null },
	]
	await t.rejects(guarded.commit(scope, both), gone)
	t.equal((await store.get(key))?.value, 1)

	const next = await guarded.update(key, 'its end', rev)
	await t.rejects(guarded.update(key, 'again', rev), { code: 'conflict' })
	await guarded.commit(scope, [{ key, value: undefined, expect: next }])
	t.strictSame(await Array.fromAsync(store.list([scope])), [], 'changes and deletions are accepted, and add nothing')
})

void t.test('other scopes do not depend on an agent', async (t) => {
	const engine = openMemory()
	const { store } = engine
	const { store: guarded } = expectingAgents(engine)
	await guarded.put(['agents', 'ada'], { uid: 'u1' })
	await guarded.commit('agent', [{ key: ['agent', 'x'], value: 1 }])
	t.equal((await store.get(['agent', 'x']))?.value, 1)
})

void t.test('an append to the log of a run adds nothing to the scope of a deleted agent', async (t) => {
	const engine = openMemory()
	const { store } = engine
	const { log } = expectingAgents(engine)
	const event = (sequence: number) => ({
		event: {
			event_id: `e${sequence}`,
			timestamp: '2026-01-01T00:00:00.000Z',
			agent_id: 'ada',
			run_id: 'r',
			sequence,
			event_type: 'run.paused',
			payload: {},
		},
	})
	const append = (last: number, expect: string | null) =>
		log.append('r', last, [event(last + 1)], { scope, ops: async () => [{ key, value: last, expect }] })
	await store.put(livenessKey('u1'), true)
	await append(0, null)
	const rev = (await store.get(key))?.rev ?? ''
	await store.delete(livenessKey('u1'))
	await store.delete(key)
	await t.rejects(append(1, null), gone)
	t.equal((await log.journal('r')).last, 1)
	await store.put(livenessKey('u1'), true)
	await t.rejects(append(1, rev), { code: 'conflict' })
	await store.put(key, 'there')
	await store.delete(livenessKey('u1'))
	await append(1, (await store.get(key))?.rev ?? '')
	t.match(await store.get(key), { value: 1 }, 'an existing record can still be changed')
})
