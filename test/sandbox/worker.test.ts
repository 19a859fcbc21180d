import t from 'tap'
import type { NewEvent, RunOrder, ToolCallRequest } from '../../core/protocol.ts'
import { RunPool } from '../../core/runs/run-pool.ts'
import { startModelServer } from '../support/model-server.ts'
import { startRawServer, startStream } from '../support/raw-server.ts'
import { runHost } from '../support/run-host.ts'

void t.test('a run in a thread calls a model server and tools, and completes with the answer', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	const note = { name: 'memory_stm_write', arguments: { key: 'a', value: 1 }, id: 'c1' }
	const usage = { prompt_tokens: 10, completion_tokens: 2 }
	model.on('Remember', { tools: [note], usage }, { text: 'It is written down.', usage, chunkSize: 4 })
	const events: NewEvent[] = []
	const calls: ToolCallRequest[] = []
	let streamed = ''
	const handle = openPool(t).execute(order('Remember this.', model.url), {
		...runHost,
		event: (event) => events.push(event),
		stream: (content) => (streamed += content),
		tool({ call }) {
			calls.push(call)
			return Promise.resolve({ status: 'done', ok: true, content: '{"key":"a"}' })
		},
	})
	t.match(await handle.outcome, {
		status: 'completed',
		answer: { content: 'It is written down.', provider: 'aimock' },
		usage: { input_tokens: 20, output_tokens: 4 },
	})
	t.strictSame(calls, [{ id: 'c1', name: 'memory.stm_write', arguments: '{"key":"a","value":1}' }])
	t.equal(streamed, 'It is written down.')
	t.match(events, [
		{ event_type: 'model.request', payload: { provider: 'aimock', model: 'm', step: 1, messages: 2, tools: 1 } },
		{ event_type: 'model.request', payload: { provider: 'aimock', model: 'm', step: 2, messages: 4, tools: 1 } },
	])
	t.match(model.requests()[1]?.messages.at(-1), { role: 'tool', tool_call_id: 'c1', content: '{"key":"a"}' })
})

void t.test('stopping runs during their answers closes the connections and keeps the thread', async (t) => {
	const all = 30
	let open = 0
	const closed = Promise.withResolvers<void>()
	const { url } = await startRawServer(t, (response) => {
		open++
		response.on('close', () => {
			if (--open === 0) closed.resolve()
		})
		startStream(response).write(
			`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'Well, ' } }] })}\n\n`,
		)
	})

	const pool = openPool(t)
	const streaming = Array.from({ length: all }, (_, n) => {
		const started = Promise.withResolvers<void>()
		const handle = pool.execute(order('Talk.', url, `r${n}`), { ...runHost, stream: () => started.resolve() })
		return { handle, started: started.promise }
	})
	await Promise.all(streaming.map(({ started }) => started))
	t.equal(open, all)
	await Promise.all(streaming.map(({ handle }) => handle.abort('enough')))
	for (const { handle } of streaming)
		t.match(await handle.outcome, { status: 'stopped', spent: [{ usage: { input_tokens: Number } }] })
	await closed.promise
	t.match(pool.stats(), { threads: 1, active: 0, lost_threads: 0 })
})

void t.test('a failed model call fails the run and keeps the thread', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	model.on('Hello', { status: 401, message: 'bad key' })
	const pool = openPool(t)
	t.match(await pool.execute(order('Hello', model.url), runHost).outcome, {
		status: 'failed',
		error: { code: 'model_rejected', message: 'aimock (m): 401 bad key' },
		usage: { input_tokens: 0, output_tokens: 0 },
	})
	t.equal(pool.stats().lost_threads, 0)
})

function openPool(test: Pick<typeof t, 'teardown'>): RunPool {
	const worker = new URL('../../sandbox/worker.ts', import.meta.url)
	const pool = new RunPool({ worker, threads: 1, runs_per_thread: 32, grace_ms: 60_000 })
	test.teardown(() => pool[Symbol.asyncDispose]())
	return pool
}

function order(prompt: string, base_url: string, run_id = 'r1'): RunOrder {
	return {
		run_id,
		agent_id: 'a',
		models: [{ provider: 'aimock', kind: 'openai', model: 'm', base_url, api_key: 'k', timeout_ms: 60_000 }],
		system: 'Be brief.',
		history: [],
		prompt,
		tools: [{ name: 'memory.stm_write', description: 'Writes.', parameters: { type: 'object' } }],
		journal: [],
		limits: { steps: 5, tokens: 100_000, wall_time_s: 60 },
		remaining_ms: 60_000,
	}
}
