/** Changes of heartbeats reach the timetable while the gateway runs. Agents and runs are stubs. */
import t from 'tap'
import type { Test } from 'tap'
import { Scope } from '../../../core/host/scope.ts'
import { openMemory } from '../../support/memory-engine.ts'
import { keepTime } from '../../../plugins/heartbeats/keeper.ts'
import { keys } from '../../../plugins/heartbeats/records.ts'
import type { HeartbeatRecord } from '../../../plugins/heartbeats/records.ts'
import { eventually } from '../../support/wait.ts'

const ada = { name: 'ada', uid: 'u1' }

interface Options {
	/** Called with the id of a heartbeat that starts a run. */
	onStart: (id: string) => unknown
	/** Called after a record was read. */
	onRead?: (id: string) => unknown
}

function start(t: Test, { onStart, onRead }: Options) {
	const { store } = openMemory()
	const scope = new Scope()
	t.teardown(() => scope.release(1_000))
	const serving = Promise.withResolvers<void>()
	const handlers = new Map<string, (event: unknown) => unknown>()
	const emitted: string[] = []
	const logged: object[] = []
	const services = {
		agents: {
			find: async (name: string) => (name === ada.name ? ada : undefined),
			async *list() {
				yield ada
			},
		},
		runs: {
			isBusy: async () => false,
			start: async (_agent: unknown, { conversation }: { conversation: string }) => {
				await onStart(conversation.replace('heartbeat:', ''))
				return { run_id: 'r', created_at: new Date().toISOString() }
			},
		},
	}
	const get: typeof store.get = async (key) => {
		const entry = await store.get<never>(key)
		await onRead?.(key.at(-1) ?? '')
		return entry
	}
	keepTime({
		store: { ...store, get },
		config: { max_per_agent: 32, missed_grace_s: 3600 },
		log: {
			error: (fields: unknown) => t.fail(JSON.stringify(fields)),
			info: (fields: object, message: string) => void logged.push({ ...fields, message }),
		},
		signal: scope.signal,
		serving: serving.promise,
		use: (name: keyof typeof services) => services[name],
		own: (thing: AsyncDisposable, label: string) => scope.own(thing, label),
		on: (type: string, handle: (event: unknown) => unknown) => void handlers.set(type, handle),
		emit: async ({ event_type }: { event_type: string }) => void emitted.push(event_type),
	} as never)
	return {
		emitted,
		logged,
		serve: () => serving.resolve(),
		stop: () => scope.release(1_000),
		handle: (event_type: string, payload: object) => handlers.get(event_type)?.({ agent_id: ada.name, payload }),
		get: async (id: string) => (await store.get<HeartbeatRecord>(keys.heartbeat(ada.uid, id)))?.value,
		remove: (id: string) => store.delete(keys.heartbeat(ada.uid, id)),
		/** Stores a heartbeat that is due in `inMs`. */
		put: (id: string, inMs: number, fields: Partial<HeartbeatRecord> = {}) =>
			store.put(keys.heartbeat(ada.uid, id), {
				id,
				cron: null,
				timezone: null,
				every: '1h',
				at: null,
				prompt: 'hello',
				paused: false,
				destination: { deliver: 'none' },
				created_at: new Date().toISOString(),
				next_at: new Date(Date.now() + inMs).toISOString(),
				last_at: null,
				begun: null,
				...fields,
			} satisfies HeartbeatRecord),
	}
}

void t.test('stored and new heartbeats fire, deleted ones do not', async (t) => {
	const fired: string[] = []
	const keeper = start(t, { onStart: (id) => fired.push(id) })
	await keeper.put('first', 20)
	await keeper.put('second', 40)
	keeper.serve()
	for (const [id, inMs] of [
		['new', 30],
		['gone', 50],
		['deleted', 60],
		['last', 120],
	] as const) {
		await keeper.put(id, inMs)
		await keeper.handle('heartbeat.created', { heartbeat_id: id })
	}
	await keeper.remove('gone') // without an event
	await keeper.handle('heartbeat.deleted', { heartbeat_id: 'deleted' })
	await eventually(() => fired.includes('last'))
	t.strictSame(fired.toSorted(), ['first', 'last', 'new', 'second'])
	await keeper.stop()
	t.strictSame(
		keeper.emitted,
		fired.map(() => 'heartbeat.fired'),
	)
	for (const id of fired)
		t.match(await keeper.get(id), { begun: null, last_at: /T/ }, 'a stop waits until its record is stored')
})

void t.test('a skipped beat is logged with its reason', async (t) => {
	const keeper = start(t, { onStart: (id) => t.fail(id) })
	await keeper.put('old', -2 * 3_600_000)
	keeper.serve()
	await eventually(() => keeper.logged.length > 0)
	await keeper.stop()
	t.match(keeper.logged, [
		{ agent_id: 'ada', heartbeat_id: 'old', reason: 'missed', message: 'a heartbeat was skipped' },
	])
	t.strictSame([keeper.logged.length, keeper.emitted], [1, ['heartbeat.skipped']])
})

void t.test('heartbeats of a deleted agent do not fire', async (t) => {
	const fired: string[] = []
	const keeper = start(t, { onStart: (id) => fired.push(id) })
	keeper.serve()
	await keeper.put('before', 50)
	await keeper.handle('heartbeat.created', { heartbeat_id: 'before' })
	await keeper.handle('agent.deleted', { uid: ada.uid })
	await keeper.put('after', 100)
	await keeper.handle('heartbeat.created', { heartbeat_id: 'after' })
	await eventually(() => fired.includes('after'))
	t.strictSame(fired, ['after'])
})

void t.test('a time that was computed while the clock was ahead is corrected', async (t) => {
	const keeper = start(t, { onStart: () => {} })
	const days = 86_400_000
	await keeper.put('far', 400 * days)
	await keeper.put('cron', 400 * days, { every: null, cron: '0 * * * *', timezone: 'UTC' })
	await keeper.put('right', 60_000)
	const before = await keeper.get('right')
	keeper.serve()
	for (const id of ['far', 'cron']) {
		let at = Infinity
		const isNear = async (): Promise<boolean> => {
			at = Date.parse((await keeper.get(id))?.next_at ?? '')
			return at <= Date.now() + 3_600_000
		}
		await eventually(isNear)
		t.ok(at > Date.now(), id)
	}
	t.strictSame(await keeper.get('right'), before)
	t.strictSame(keeper.emitted, [])
})

void t.test('a heartbeat that is changed during its correction does not block others', async (t) => {
	const fired: string[] = []
	let isChanged = false
	const keeper = start(t, {
		onStart: (id) => fired.push(id),
		async onRead(id) {
			if (id !== 'ahead' || isChanged) return
			isChanged = true
			await keeper.put('ahead', 7_200_000, { prompt: 'changed' })
		},
	})
	await keeper.put('ahead', 7_200_000) // further away than its interval: the clock was set back
	await keeper.put('due', 20)
	keeper.serve()
	await eventually(() => fired.includes('due'))
	const { prompt, next_at } = (await keeper.get('ahead')) ?? {}
	t.equal(prompt, 'changed')
	t.ok(Date.parse(next_at ?? '') < Date.now() + 7_000_000)
})
