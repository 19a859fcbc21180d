/** The cache of earlier turns: reads return what the store has. */
import t from 'tap'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { LogEntry, Op } from '../../../core/store/ports.ts'
import { newId, now } from '../../../core/util/ids.ts'
import type { RunRecord } from '../../../plugins/runs/contract.ts'
import { historyOf } from '../../../plugins/runs/history.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { knownTurns } from '../../../plugins/runs/known-turns.ts'

const usage = { input_tokens: 0, output_tokens: 0 }

async function openTurnStore(test: Pick<typeof t, 'teardown' | 'testdir'>) {
	const engine = await openLmdb({ path: test.testdir() })
	test.teardown(() => engine[Symbol.asyncDispose]())
	const { store, log } = engine
	const counts = { records: 0, listings: 0 }
	/** Each delays one listing after it has read its keys. */
	const gates: Promise<void>[] = []
	const counting: typeof store = {
		...store,
		get: (key) => {
			counts.records++
			return store.get(key)
		},
		async *keys(...options) {
			counts.listings++
			const listed = await Array.fromAsync(store.keys(...options))
			await gates.shift()
			yield* listed
		},
	}
	const events = { journal: (run: string) => log.journal(run) } as never
	const uid = newId()
	const recordOf = (run_id: string, conversation: string, fields: Partial<RunRecord>): RunRecord => ({
		run_id,
		agent: 'ada',
		agent_uid: uid,
		conversation,
		status: 'completed',
		trigger: 'api',
		prompt: `prompt ${run_id}`,
		created_at: now(),
		started_at: now(),
		ended_at: now(),
		answer: 'done',
		usage,
		error: null,
		question: null,
		active_ms: 0,
		...fields,
	})
	return {
		counts,
		gates,
		async add(conversation: string, fields: Partial<RunRecord> = {}, run_id = newId()): Promise<string> {
			const answer = { usage, provider: 'p', model: 'm', finish_reason: 'stop' }
			const steps = [
				{
					kind: 'model',
					answer: { ...answer, content: '', tool_calls: [{ id: `c_${run_id}`, name: 'x', arguments: '{}' }] },
				},
				{ kind: 'tool', call_id: `c_${run_id}`, ok: true, content: 'figures 12.50, '.repeat(40) },
				{ kind: 'model', answer: { ...answer, content: `answer ${run_id}`, tool_calls: [] } },
			]
			const event = { event_id: '', timestamp: now(), agent_id: 'ada', run_id, event_type: 'x', payload: {} }
			const entries = steps.map((step, at): LogEntry => ({
				event: { ...event, event_id: newId(), sequence: at + 1 },
				step,
			}))
			await log.append(run_id, 0, entries)
			await store.commit(agentScope(uid), [
				{ key: keys.run(uid, run_id), value: recordOf(run_id, conversation, fields) },
				{ key: keys.turn(uid, conversation, run_id), value: {} },
			])
			return run_id
		},
		end: (conversation: string, run_id: string) => store.put(keys.run(uid, run_id), recordOf(run_id, conversation, {})),
		remove: (conversation: string, run_ids: readonly string[]) =>
			store.commit(
				agentScope(uid),
				run_ids
					.flatMap((run_id) => [keys.turn(uid, conversation, run_id), keys.run(uid, run_id)])
					.map((key): Op => ({ key, value: undefined })),
			),
		known: (conversation: string) => knownTurns(counting, uid, conversation),
		/** Reads as the gateway does. `fresh`: without the cache. */
		read(conversation: string, marks: Partial<Parameters<typeof historyOf>[2]> = {}, run_id?: string, fresh = false) {
			const ctx = { store: fresh ? { ...store } : counting, events }
			const run = { agent_uid: uid, conversation, ...(run_id !== undefined && { run_id }) }
			return historyOf(ctx, run, { from: null, whole: null, tokens: 1e6, ...marks })
		},
	}
}

void t.test('a conversation is listed and read once, independently of the number of runs', async (t) => {
	const turnStore = await openTurnStore(t)
	for (let turn = 0; turn < 300; turn++) await turnStore.add('c')
	t.equal((await turnStore.read('c')).messages.length, 1_200)
	const before = { ...turnStore.counts }
	for (let turn = 0; turn < 5; turn++) {
		await turnStore.add('c')
		t.equal((await turnStore.read('c')).messages.length, 1_204 + turn * 4)
	}
	t.strictSame(turnStore.counts, { records: before.records + 5, listings: before.listings })
})

void t.test('turns before the first needed one are not listed or cached', async (t) => {
	const turnStore = await openTurnStore(t)
	const ids: string[] = []
	for (let turn = 0; turn < 20; turn++) ids.push(await turnStore.add('c'))
	await turnStore.read('c')
	const { characters } = turnStore.known('c')
	const from = ids[15]!
	for (let time = 0; time < 2; time++) {
		const { listings } = turnStore.counts
		t.equal((await turnStore.read('c', { from })).messages.length, 20)
		t.equal(turnStore.counts.listings, listings)
		t.ok(turnStore.known('c').characters < characters / 2)
	}
	t.equal((await turnStore.read('c')).messages.length, 80, 'all turns can be read again')
})

void t.test('the next read shows every change of a conversation', async (t) => {
	const turnStore = await openTurnStore(t)
	let seed = 7
	const random = (below: number): number => (seed = (seed * 16_807) % 2_147_483_647) % below
	const conversations = ['a', 'b', 'c']
	const turns: Record<string, string[]> = { a: [], b: [], c: [] }
	const open: [conversation: string, run_id: string][] = []
	const kinds: Partial<RunRecord>[] = [
		{},
		{ status: 'stopped', answer: null },
		{ status: 'stopped', started_at: null, answer: null },
		{ tool_calls: [{ id: '1', name: 'x', arguments: '{}' }] },
	]
	const change = async (): Promise<void> => {
		const conversation = conversations[random(3)]!
		const list = turns[conversation]!
		switch (random(10)) {
			case 0:
				if (list.length > 0) await turnStore.remove(conversation, list.splice(random(list.length), 1))
				return
			case 1:
				// An older id, as after the clock was set back.
				list.push(await turnStore.add(conversation, {}, `00${newId().slice(2)}`))
				return
			case 2: {
				const run_id = await turnStore.add(conversation, { status: 'started', ended_at: null, answer: null })
				list.push(run_id)
				open.push([conversation, run_id])
				return
			}
			case 3: {
				const [oldest] = open.splice(0, 1)
				if (oldest && turns[oldest[0]]!.includes(oldest[1])) await turnStore.end(...oldest)
				return
			}
			case 4:
				if (random(4) === 0) await turnStore.remove(conversation, list.splice(0))
				return
			default:
				list.push(await turnStore.add(conversation, kinds[random(4)]))
		}
	}
	for (let round = 0; round < 250; round++) {
		const conversation = conversations[random(3)]!
		const list = turns[conversation]!
		const randomId = (): string | null => list[random(2 * list.length + 1)] ?? null
		const marks = { from: randomId(), whole: randomId(), tokens: random(2) ? 1e6 : random(3_000) }
		// A change may happen during reads.
		const reads = [turnStore.read(conversation, marks), turnStore.read('a')]
		await change()
		await Promise.all(reads)
		const run_id = randomId() ?? undefined
		t.strictSame(
			await turnStore.read(conversation, marks, run_id),
			await turnStore.read(conversation, marks, run_id, true),
			`round ${round}`,
		)
	}
})

void t.test('a read shows turns that are added or deleted during a listing', async (t) => {
	const turnStore = await openTurnStore(t)
	const ids = [await turnStore.add('c'), await turnStore.add('c')]
	const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
	turnStore.gates.push(first.promise, second.promise)
	const reads = [turnStore.read('c'), turnStore.read('c')]
	ids.push(await turnStore.add('c'))
	first.resolve()
	await reads[0]
	ids.push(await turnStore.add('c'))
	second.resolve()
	await reads[1]
	const prompts = async (): Promise<string[]> =>
		(await turnStore.read('c')).messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))
	t.strictSame(
		await prompts(),
		ids.map((id) => `prompt ${id}`),
	)
	await turnStore.remove('c', ids.splice(1, 1))
	const third = Promise.withResolvers<void>()
	turnStore.gates.push(third.promise)
	const read = turnStore.read('c')
	await turnStore.remove('c', ids.splice(0, 1))
	third.resolve()
	await read
	t.strictSame(
		await prompts(),
		ids.map((id) => `prompt ${id}`),
	)
})

void t.test('the cache has a bound', async (t) => {
	const turnStore = await openTurnStore(t)
	const names = Array.from({ length: 30 }, (_, at) => `c${at}`)
	for (const name of names) {
		await turnStore.add(name, { prompt: 'x'.repeat(1024 * 1024) })
		await turnStore.read(name)
	}
	const { records } = turnStore.counts
	await turnStore.read(names.at(-1)!)
	t.equal(turnStore.counts.records, records, 'the latest conversation is in the cache')
	await turnStore.read(names[0]!)
	t.equal(turnStore.counts.records, records + 1, 'the first conversation is not')
})
