import { once } from 'node:events'
import { MessageChannel, threadId } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import t from 'tap'
import type {
	ChatMessage,
	FromThread,
	ModelAnswer,
	RunOrder,
	RunOutcome,
	ToMain,
	ToolSpec,
	ToThread,
} from '../../core/protocol.ts'
import { RunThread } from '../../core/runs/run-thread.ts'
import type { Link } from '../../sandbox/link.ts'
import { serve } from '../../sandbox/serve.ts'

/** The main thread's side of one thread. */
class Main {
	readonly port: MessagePort
	readonly received: ToMain[] = []
	/** The number of posted messages, each of which is a list. */
	batches = 0
	#wake = (): void => {}

	constructor(port: MessagePort) {
		this.port = port
		port.on('message', (batch: FromThread) => {
			this.batches++
			this.received.push(...batch.map(({ message }) => message))
			this.#wake()
		})
	}

	/** Waits for `count` messages, and returns the first ones. */
	async receive(count: number): Promise<ToMain[]> {
		while (this.received.length < count) await new Promise<void>((resolve) => (this.#wake = resolve))
		return this.received.slice(0, count)
	}

	send(message: ToThread['message'], run = 1): void {
		this.port.postMessage({ run, message } satisfies ToThread)
	}
}

interface StartedRun {
	main: Main
	/** The link of the first run. */
	link: Link
	end(outcome: RunOutcome): void
}

const { tools: _none, ...order }: RunOrder = {
	run_id: 'r1',
	agent_id: 'a',
	models: [],
	system: null,
	history: [],
	prompt: 'Hello',
	tools: [],
	journal: [],
	limits: { steps: 5, tokens: 1_000, wall_time_s: 60 },
	remaining_ms: 60_000,
}

async function startRun(test: Pick<typeof t, 'teardown'>, ...first: ToThread['message'][]): Promise<StartedRun> {
	const { port1, port2 } = new MessageChannel()
	test.teardown(() => port1.close())
	const main = new Main(port1)
	const started = Promise.withResolvers<Link>()
	const ended = Promise.withResolvers<RunOutcome>()
	main.send({ kind: 'order', order, tools: { id: 1, list: [] }, history: { from: 0, added: [], forget: [] } })
	for (const message of first) main.send(message)
	void serve(port2, (_order, link) => {
		started.resolve(link)
		return ended.promise
	})
	return { main, link: await started.promise, end: ended.resolve }
}

const answer: ModelAnswer = {
	content: 'All.',
	tool_calls: [],
	usage: { input_tokens: 1, output_tokens: 1 },
	provider: 'p',
	model: 'm',
	finish_reason: 'stop',
}

void t.test('the first message names the thread of the run', async (t) => {
	const { main } = await startRun(t)
	t.strictSame(await main.receive(1), [{ kind: 'hello', thread: threadId }])
})

void t.test('pieces in quick succession are merged, except the first', async (t) => {
	const { main, link } = await startRun(t)
	for (const piece of ['a', 'b', 'c', 'd']) link.stream(piece)
	t.strictSame((await main.receive(3)).slice(1), [
		{ kind: 'stream', content: 'a' },
		{ kind: 'stream', content: 'bcd' },
	])
})

void t.test('a long piece is sent at once', async (t) => {
	const { main, link } = await startRun(t)
	link.stream('a')
	link.stream('b'.repeat(20_000))
	link.emit({ event_type: 'model.request', payload: {} })
	t.match((await main.receive(4)).slice(2), [{ kind: 'stream', content: /^b+$/ }, { kind: 'event' }])
})

void t.test('pending pieces are sent before any other message, and before the outcome', async (t) => {
	const { main, link, end } = await startRun(t)
	link.stream('a')
	link.stream('b')
	link.emit({ event_type: 'model.request', payload: {} })
	link.stream('c')
	link.stream('d')
	link.call('model', { answer, spent: [] }).catch(() => {}) // has no reply
	await main.receive(7)
	link.stream('e')
	link.stream('f')
	end({ status: 'stopped' })
	t.match(await main.receive(10), [
		{ kind: 'hello' },
		{ content: 'a' },
		{ content: 'b' },
		{ kind: 'event' },
		{ content: 'c' },
		{ content: 'd' },
		{ kind: 'call' },
		{ content: 'e' },
		{ content: 'f' },
		{ kind: 'outcome', outcome: { status: 'stopped' } },
	])
})

void t.test('messages of all runs from one turn of the event loop are posted as one batch', async (t) => {
	const { port1, port2 } = new MessageChannel()
	t.teardown(() => port1.close())
	const main = new Main(port1)
	for (const run of [1, 2, 3])
		main.send({ kind: 'order', order, tools: { id: 1, list: [] }, history: { from: 0, added: [], forget: [] } }, run)
	void serve(port2, async (_order, link) => {
		link.emit({ event_type: 'model.request', payload: {} })
		await Promise.resolve()
		link.emit({ event_type: 'model.retry', payload: {} })
		return new Promise(() => {})
	})
	await main.receive(9)
	t.equal(main.batches, 1)
})

void t.test('a call settles with its reply, a value or an error', async (t) => {
	const { main, link } = await startRun(t)
	const first = link.call('model', { answer, spent: [] })
	const second = link.call('tool', { call: { id: 'c', name: 't', arguments: '{}' } })
	const [, firstCall, secondCall] = await main.receive(3)
	t.match(firstCall, { kind: 'call', method: 'model', params: { answer } })
	t.match(secondCall, { kind: 'call', method: 'tool', params: { call: { id: 'c' } } })
	const ids = [firstCall, secondCall].map((message) => (message?.kind === 'call' ? message.id : 0))
	main.send({ kind: 'reply', id: ids[1] ?? 0, value: { status: 'done', ok: true, content: 'x' } })
	main.send({ kind: 'reply', id: ids[0] ?? 0, error: { code: 'storage_full', message: 'no room' } })
	t.strictSame(await second, { status: 'done', ok: true, content: 'x' })
	await t.rejects(first, { code: 'storage_full', message: 'no room' })
})

void t.test('an abort rejects the pending calls and all later ones', async (t) => {
	const { main, link } = await startRun(t)
	const call = link.call('model', { answer, spent: [] })
	main.send({ kind: 'abort', reason: 'enough' }, 2) // of another run
	main.send({ kind: 'abort', reason: 'enough' })
	await t.rejects(call, { code: 'stopped', message: 'enough' })
	t.equal(link.signal.reason, 'enough')
	await t.rejects(link.call('model', { answer, spent: [] }), { code: 'stopped' })
})

void t.test('an abort posted before the thread received the run applies before the run starts', async (t) => {
	const { link } = await startRun(t, { kind: 'abort', reason: 'enough' })
	t.ok(link.signal.aborted)
})

void t.test('closing the port aborts all runs', async (t) => {
	const { main, link } = await startRun(t)
	const aborted = once(link.signal, 'abort')
	main.port.close()
	await aborted
	t.match(link.signal.reason, /released/)
})

void t.test('a thread receives each list of tools once, keeps 32, and receives a forgotten one again', async (t) => {
	const toolOf = (n: number): ToolSpec => ({ name: `tool-${n}`, description: '', parameters: {} })
	const lists = Array.from({ length: 33 }, (_, n) => [toolOf(n), toolOf(n + 100)])
	const assigned = [0, 0, ...lists.keys(), 0, 32]
	const { sent, received } = await serveOrders(
		t,
		assigned.map((n) => ({ ...order, tools: [...(lists[n] ?? [])] })),
	)
	t.strictSame(
		received.map(({ tools }) => tools),
		assigned.map((n) => lists[n]),
	)
	t.equal(received[0]?.tools, received[1]?.tools, 'the same object, so that data computed from it is reused')
	const lengths = sent.map(({ message }) => message.kind === 'order' && message.tools.list !== undefined)
	t.strictSame(lengths, [true, false, false, ...Array.from({ length: 32 }, () => true), true, false])
})

void t.test('a run gets its whole history, of which the thread receives only new messages', async (t) => {
	const all = Array.from({ length: 8 }, (_, n): ChatMessage => ({ role: 'user', content: `message ${n}` }))
	// A history that grows, the same one twice, a shorter one, and one without its beginning.
	const histories = [0, 2, 4, 6, 6, 3, 8].map((end) => all.slice(0, end)).concat([all.slice(5), all.slice(5)])
	const { sent, received } = await serveOrders(
		t,
		histories.map((history) => ({ ...order, tools: [], history })),
	)
	t.strictSame(
		received.map(({ history }) => history),
		histories,
	)
	t.strictSame(
		sent.map(({ message }) => message.kind === 'order' && message.history.added.length),
		[0, 2, 4, 2, 0, 0, 5, 3, 3],
	)
})

/** Assigns the runs to one thread. Returns the messages to the thread, and the orders as its runs received them. */
async function serveOrders(
	test: Pick<typeof t, 'teardown'>,
	orders: RunOrder[],
): Promise<{ sent: ToThread[]; received: RunOrder[] }> {
	const sent: ToThread[] = []
	const thread = new RunThread({
		post: (message) => sent.push(structuredClone(message)),
		terminate: () => {},
		close: () => [],
	})
	const { port1, port2 } = new MessageChannel()
	test.teardown(() => port1.close())
	const received: RunOrder[] = []
	const all = Promise.withResolvers<void>()
	void serve(port2, (order) => {
		if (received.push(order) === orders.length) all.resolve()
		return Promise.resolve({ status: 'stopped' })
	})
	for (const order of orders) thread.assign({ receive: () => {}, lost: () => {} }).order(order)
	for (const message of sent) port1.postMessage(message)
	await all.promise
	return { sent, received }
}
