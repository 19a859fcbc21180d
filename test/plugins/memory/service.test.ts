/** The service that other plugins use: repeated calls, deleted agents, a lost index thread, limits. */
import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import type { Test } from 'tap'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { LongTermMemory } from '../../../plugins/memory/contract.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { contextProbe } from '../../support/context-probe.ts'

async function open(t: Test): Promise<{ gateway: TestGateway; ctx: Context; memory: LongTermMemory; ada: AgentRef }> {
	const { files, context } = contextProbe()
	const gateway = await startGateway({ config: 'plugins: {probe: true}\n', files })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const ctx = context()
	return { gateway, ctx, memory: ctx.use('memory'), ada: await ctx.use('agents').get('ada') }
}

async function keysOf(ctx: Context, { uid }: AgentRef): Promise<string[]> {
	const found: string[] = []
	for await (const { key } of ctx.store.list([`agent:${uid}`])) found.push(key.join(' '))
	return found
}

void t.test('a repeated call stores nothing twice, even at the same time', async (t) => {
	const { memory, ada } = await open(t)
	const wanted = { content: 'The gate is green.', tags: ['gate'], key: 'run-1:call-1' }
	const first = await memory.store(ada, wanted)
	t.strictSame(await memory.store(ada, wanted), first)
	const many = await Promise.all(
		Array.from({ length: 20 }, () => memory.store(ada, { content: 'The gate is high.', key: 'run-2:call-1' })),
	)
	t.equal(new Set(many.map(({ id }) => id)).size, 1)
	t.equal(await memory.count(ada), 2)
	t.equal(await memory.forget(ada, first.id), true)
	t.equal(await memory.forget(ada, first.id), false)
	t.equal(await memory.count(ada), 1)
})

void t.test('of many calls that forget the same memory, one succeeds', async (t) => {
	const { memory, ada } = await open(t)
	const { id } = await memory.store(ada, { content: 'Only once.' })
	const done = await Promise.all(Array.from({ length: 10 }, () => memory.forget(ada, id)))
	t.equal(done.filter(Boolean).length, 1)
	t.equal(await memory.count(ada), 0)
})

void t.test('an agent that is deleted while memories are stored leaves no record behind', async (t) => {
	const { gateway, ctx, memory, ada } = await open(t)
	await memory.search(ada, 'anything', 1)
	const deleted = Promise.withResolvers<void>()
	const client = async (lane: number): Promise<void> => {
		for (let n = 0; ; n++) {
			await memory.store(ada, { content: `Fact ${lane} ${n}.`, key: `${lane} ${n}` })
			if (n === 5) deleted.resolve()
		}
	}
	const clients = Promise.allSettled(Array.from({ length: 8 }, (_, lane) => client(lane)))
	await deleted.promise
	t.equal((await gateway.request('DELETE', '/v1/agents/ada')).status, 204)
	for (const outcome of await clients) t.match(outcome, { reason: { code: 'not_found' } })
	t.strictSame(await keysOf(ctx, ada), [])
})

void t.test('if the index thread ends, searches are still answered and nothing is lost', async (t) => {
	const workers: Worker[] = []
	const record = (worker: Worker): void => void workers.push(worker)
	process.on('worker', record)
	t.teardown(() => process.off('worker', record))
	const { memory, ada } = await open(t)
	const before = workers.length
	await memory.store(ada, { content: 'The harbour is closed on Mondays.' })
	t.match(await memory.search(ada, 'harbour', 1), [{ content: 'The harbour is closed on Mondays.' }])
	const [thread] = workers.slice(before)
	t.ok(thread, 'it is started with the first search')

	const during = Promise.all(Array.from({ length: 20 }, () => memory.search(ada, 'when is the harbour closed?', 1)))
	const stored = memory.store(ada, { content: 'The market is closed on Fridays.' })
	const ended = once(thread as Worker, 'exit')
	void thread?.terminate()
	for (const found of await during) t.match(found, [{ content: 'The harbour is closed on Mondays.' }])
	await stored
	await ended
	t.match(await memory.search(ada, 'market', 1), [{ content: 'The market is closed on Fridays.' }])
	t.equal(await memory.count(ada), 2)
})

void t.test('secrets are redacted in memories', async (t) => {
	const { ctx, memory, ada } = await open(t)
	ctx.redactor.add(ada, { id: 's1', name: 'GATE', value: 'correct-horse-battery' })
	t.teardown(() => ctx.redactor.forget(ada.uid))
	const { content } = await memory.store(ada, { content: 'The code of the gate is correct-horse-battery.' })
	t.equal(content, 'The code of the gate is [redacted:GATE].')
	t.match(await memory.search(ada, 'correct-horse-battery gate', 1), [{ content }])
})

void t.test('memories with all of the tags are found among many others', async (t) => {
	const { memory, ada } = await open(t)
	await Promise.all(Array.from({ length: 40 }, (_, n) => memory.store(ada, { content: `Boat ${n}`, tags: ['boat'] })))
	const { id } = await memory.store(ada, { content: 'Boat of the mayor', tags: ['boat', 'mayor'] })
	t.match(await memory.search(ada, 'boat', 10, ['boat', 'mayor']), [{ id, tags: ['boat', 'mayor'] }])
	t.equal((await memory.search(ada, 'boat', 100, ['boat'])).length, 41)
	t.strictSame(await memory.search(ada, 'boat', 10, ['boat', 'nothing']), [])
})

void t.test('a search limit outside 1 to 100 is refused', async (t) => {
	const { memory, ada } = await open(t)
	const check = async (about: string): Promise<void> => {
		for (const limit of [0, -1, 1.5, 101, NaN, Infinity, -Infinity, '3' as never, undefined as never]) {
			const search = memory.search(ada, 'harbour', limit)
			await t.rejects(search, { code: 'invalid_request', message: /limit/ }, `${String(limit)}, ${about}`)
		}
	}
	await check('without memories')
	await memory.store(ada, { content: 'The harbour is closed on Mondays.' })
	await check('with one')
	t.equal((await memory.search(ada, 'harbour', 1)).length, 1)
	t.equal((await memory.search(ada, 'harbour', 100)).length, 1)
})

void t.test('at the limit, a stored memory can be stored again', async (t) => {
	const gateway = await startGateway({ config: 'memory:\n  max_per_agent: 1\n' })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const store = (content: string, tags: string[]) =>
		gateway.request('POST', '/v1/agents/ada/memory', { body: { content, tags } })
	const first = await store('The gate is green.', ['gate'])
	const again = await store('The gate is green.', ['colour'])
	t.match(again, { status: 201, body: { id: first.body.id, tags: ['gate', 'colour'] } })
	t.match(await store('The gate is high.', []), { status: 409, body: { code: 'conflict' } })
	await gateway.request('DELETE', `/v1/agents/ada/memory/${first.body.id}`)
	t.equal((await store('The gate is high.', [])).status, 201, 'the forgotten memory made room')
})
