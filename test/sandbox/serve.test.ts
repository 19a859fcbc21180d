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

/** One thread, seen from main. */
class Main {
	readonly port: MessagePort
	readonly heard: ToMain[] = []
	lists = 0
	#wake = (): void => {}

	constructor(port: MessagePort) {
		this.port = port
		port.on('message', (said: FromThread) => {
			this.lists++
			this.heard.push(...said.map(({ message }) => message))
			this.#wake()
		})
	}

	/** Settles once the first `count` messages are there, and returns them. */
	async hears(count: number): Promise<ToMain[]> {
		while (this.heard.length < count) await new Promise<void>((resolve) => (this.#wake = resolve))
		return this.heard.slice(0, count)
	}

	say(message: ToThread['message'], run = 1): void {
		this.port.postMessage({ run, message } satisfies ToThread)
	}
}

interface Begun {
	main: Main
	/** Of the first run. */
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

async function begin(test: Pick<typeof t, 'teardown'>, ...first: ToThread['message'][]): Promise<Begun> {
	const { port1, port2 } = new MessageChannel()
	test.teardown(() => port1.close())
	const main = new Main(port1)
	const begun = Promise.withResolvers<Link>()
	const ended = Promise.withResolvers<RunOutcome>()
	main.say({ kind: 'order', order, tools: { id: 1, list: [] }, history: { from: 0, added: [], forget: [] } })
	for (const message of first) main.say(message)
	void serve(port2, (_order, link) => {
		begun.resolve(link)
		return ended.promise
	})
	return { main, link: await begun.promise, end: ended.resolve }
}

const answer: ModelAnswer = {
	content: 'All.',
	tool_calls: [],
	usage: { input_tokens: 1, output_tokens: 1 },
	provider: 'p',
	model: 'm',
	finish_reason: 'stop',
}

void t.test('the first message says which thread has the run', async (t) => {
	const { main } = await begin(t)
	t.strictSame(await main.hears(1), [{ kind: 'hello', thread: threadId }])
})

void t.test('pieces that come closely are merged, except the first', async (t) => {
	const { main, link } = await begin(t)
	for (const piece of ['a', 'b', 'c', 'd']) link.stream(piece)
	t.strictSame((await main.hears(3)).slice(1), [
		{ kind: 'stream', content: 'a' },
		{ kind: 'stream', content: 'bcd' },
	])
})

void t.test('a long piece does not wait', async (t) => {
	const { main, link } = await begin(t)
	link.stream('a')
	link.stream('b'.repeat(20_000))
	link.emit({ event_type: 'model.request', payload: {} })
	t.match((await main.hears(4)).slice(2), [{ kind: 'stream', content: /^b+$/ }, { kind: 'event' }])
})

void t.test('everything that waits goes before any other message, and before the end', async (t) => {
	const { main, link, end } = await begin(t)
	link.stream('a')
	link.stream('b')
	link.emit({ event_type: 'model.request', payload: {} })
	link.stream('c')
	link.stream('d')
	link.call('model', { answer, spent: [] }).catch(() => {}) // nobody answers it
	await main.hears(7)
	link.stream('e')
	link.stream('f')
	end({ status: 'stopped' })
	t.match(await main.hears(10), [
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

void t.test('what the runs of a thread say in one turn of the event loop is posted as one message', async (t) => {
	const { port1, port2 } = new MessageChannel()
	t.teardown(() => port1.close())
	const main = new Main(port1)
	for (const run of [1, 2, 3])
		main.say({ kind: 'order', order, tools: { id: 1, list: [] }, history: { from: 0, added: [], forget: [] } }, run)
	void serve(port2, async (_order, link) => {
		link.emit({ event_type: 'model.request', payload: {} })
		await Promise.resolve()
		link.emit({ event_type: 'model.retry', payload: {} })
		return new Promise(() => {})
	})
	await main.hears(9)
	t.equal(main.lists, 1)
})

void t.test('a call settles with the reply to it, value or error', async (t) => {
	const { main, link } = await begin(t)
	const first = link.call('model', { answer, spent: [] })
	const second = link.call('tool', { call: { id: 'c', name: 't', arguments: '{}' } })
	const [, one, two] = await main.hears(3)
	t.match(one, { kind: 'call', method: 'model', params: { answer } })
	t.match(two, { kind: 'call', method: 'tool', params: { call: { id: 'c' } } })
	const ids = [one, two].map((message) => (message?.kind === 'call' ? message.id : 0))
	main.say({ kind: 'reply', id: ids[1] ?? 0, value: { status: 'done', ok: true, content: 'x' } })
	main.say({ kind: 'reply', id: ids[0] ?? 0, error: { code: 'storage_full', message: 'no room' } })
	t.strictSame(await second, { status: 'done', ok: true, content: 'x' })
	await t.rejects(first, { code: 'storage_full', message: 'no room' })
})

void t.test('an abort rejects the calls under way and all later ones', async (t) => {
	const { main, link } = await begin(t)
	const call = link.call('model', { answer, spent: [] })
	main.say({ kind: 'abort', reason: 'enough' }, 2) // of another run
	main.say({ kind: 'abort', reason: 'enough' })
	await t.rejects(call, { code: 'stopped', message: 'enough' })
	t.equal(link.signal.reason, 'enough')
	await t.rejects(link.call('model', { answer, spent: [] }), { code: 'stopped' })
})

void t.test('an abort that was posted before the thread took the run is heard before the run begins', async (t) => {
	const { link } = await begin(t, { kind: 'abort', reason: 'enough' })
	t.ok(link.signal.aborted)
})

void t.test('a main thread that closes the port aborts all runs', async (t) => {
	const { main, link } = await begin(t)
	const aborted = once(link.signal, 'abort')
	main.port.close()
	await aborted
	t.match(link.signal.reason, /released/)
})

void t.test('a thread gets each list of tools once, keeps 32 of them, and gets a forgotten one again', async (t) => {
	const sent: ToThread[] = []
	const thread = new RunThread({
		post: (message) => sent.push(structuredClone(message)),
		terminate: () => {},
		close: () => [],
	})
	const seen: ToolSpec[][] = []
	const { port1, port2 } = new MessageChannel()
	t.teardown(() => port1.close())
	void serve(port2, ({ tools }) => {
		seen.push(tools)
		return Promise.resolve({ status: 'stopped' })
	})
	const toolOf = (n: number): ToolSpec => ({ name: `tool-${n}`, description: '', parameters: {} })
	const lists = Array.from({ length: 33 }, (_, n) => [toolOf(n), toolOf(n + 100)])
	const run = { receive: () => {}, lost: () => {} }
	const asked = [0, 0, ...lists.keys(), 0, 32]
	for (const n of asked) thread.assign(run).order({ ...order, tools: [...(lists[n] ?? [])] })
	for (const message of sent) port1.postMessage(message)
	while (seen.length < asked.length) await new Promise((resolve) => setImmediate(resolve))
	t.strictSame(
		seen,
		asked.map((n) => lists[n]),
	)
	t.equal(seen[0], seen[1], 'the same object, so that what is computed of it is kept')
	const lengths = sent.map(({ message }) => message.kind === 'order' && message.tools.list !== undefined)
	t.strictSame(lengths, [true, false, false, ...Array.from({ length: 32 }, () => true), true, false])
})

void t.test('a run gets its whole history, of which the thread is sent what was added', async (t) => {
	const sent: ToThread[] = []
	const thread = new RunThread({
		post: (message) => sent.push(structuredClone(message)),
		terminate: () => {},
		close: () => [],
	})
	const seen: ChatMessage[][] = []
	const { port1, port2 } = new MessageChannel()
	t.teardown(() => port1.close())
	void serve(port2, ({ history }) => {
		seen.push(history)
		return Promise.resolve({ status: 'stopped' })
	})
	const all = Array.from({ length: 8 }, (_, n): ChatMessage => ({ role: 'user', content: `message ${n}` }))
	const run = { receive: () => {}, lost: () => {} }
	// One that grows, twice the same, a shorter one, and one that is cut.
	const histories = [0, 2, 4, 6, 6, 3, 8].map((end) => all.slice(0, end)).concat([all.slice(5), all.slice(5)])
	for (const history of histories) thread.assign(run).order({ ...order, tools: [], history })
	for (const message of sent) port1.postMessage(message)
	while (seen.length < histories.length) await new Promise((resolve) => setImmediate(resolve))
	t.strictSame(seen, histories)
	t.strictSame(
		sent.map(({ message }) => message.kind === 'order' && message.history.added.length),
		[0, 2, 4, 2, 0, 0, 5, 3, 3],
	)
})
