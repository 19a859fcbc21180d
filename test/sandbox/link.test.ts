import { once } from 'node:events'
import { MessageChannel, threadId } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import t from 'tap'
import type { ModelAnswer, ToMain, ToWorker } from '../../core/protocol.ts'
import { openLink } from '../../sandbox/link.ts'

class Main {
	readonly port: MessagePort
	readonly heard: ToMain[] = []
	lists = 0
	#wake = (): void => {}

	constructor(port: MessagePort) {
		this.port = port
		port.on('message', (messages: ToMain[]) => {
			this.lists++
			this.heard.push(...messages)
			this.#wake()
		})
	}

	/** Settles once the first `count` messages are there, and answers with them. */
	async hears(count: number): Promise<ToMain[]> {
		while (this.heard.length < count) await new Promise<void>((resolve) => (this.#wake = resolve))
		return this.heard.slice(0, count)
	}

	say(message: ToWorker): void {
		this.port.postMessage(message)
	}
}

function makeEnds(test: Pick<typeof t, 'teardown'>): { main: Main; port: MessagePort } {
	const { port1, port2 } = new MessageChannel()
	test.teardown(() => port1.close())
	return { main: new Main(port1), port: port2 }
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
	const { main, port } = makeEnds(t)
	openLink(port)
	t.strictSame(await main.hears(1), [{ kind: 'hello', thread: threadId }])
})

void t.test('pieces that come closely are merged, except the first', async (t) => {
	const { main, port } = makeEnds(t)
	const link = openLink(port)
	for (const piece of ['a', 'b', 'c', 'd']) link.stream(piece)
	t.strictSame((await main.hears(3)).slice(1), [
		{ kind: 'stream', content: 'a' },
		{ kind: 'stream', content: 'bcd' },
	])
})

void t.test('a long piece does not wait', async (t) => {
	const { main, port } = makeEnds(t)
	const link = openLink(port)
	link.stream('a')
	link.stream('b'.repeat(20_000))
	link.emit({ event_type: 'next', payload: {} })
	t.match((await main.hears(4)).slice(2), [{ kind: 'stream', content: /^b+$/ }, { kind: 'event' }])
})

void t.test('everything that waits goes before any other message, and the rest is the end', async (t) => {
	const { main, port } = makeEnds(t)
	const link = openLink(port)
	link.stream('a')
	link.stream('b')
	link.emit({ event_type: 'next', payload: {} })
	link.stream('c')
	link.stream('d')
	link.call('model', { answer }).catch(() => {}) // nobody answers it
	await main.hears(7)
	link.stream('e')
	link.stream('f')
	const last = link.end({ status: 'stopped' })
	t.match(
		[...main.heard, ...last],
		[
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
		],
	)
})

void t.test('what is said in one go is posted as one message', async (t) => {
	const { main, port } = makeEnds(t)
	const link = openLink(port)
	link.emit({ event_type: 'one', payload: {} })
	link.emit({ event_type: 'two', payload: {} })
	await main.hears(3)
	t.equal(main.lists, 1)
	link.end({ status: 'stopped' })
})

void t.test('a call settles with the reply to it, value or error', async (t) => {
	const { main, port } = makeEnds(t)
	const link = openLink(port)
	const first = link.call('model', { answer })
	const second = link.call('tool', { call: { id: 'c', name: 't', arguments: '{}' } })
	const [, one, two] = await main.hears(3)
	t.match(one, { kind: 'call', method: 'model', params: { answer } })
	t.match(two, { kind: 'call', method: 'tool', params: { call: { id: 'c' } } })
	const ids = [one, two].map((message) => (message?.kind === 'call' ? message.id : 0))
	main.say({ kind: 'reply', id: ids[1] ?? 0, value: { status: 'done', ok: true, content: 'x' } })
	main.say({ kind: 'reply', id: ids[0] ?? 0, error: { code: 'storage_full', message: 'no room' } })
	t.strictSame(await second, { status: 'done', ok: true, content: 'x' })
	await t.rejects(first, { code: 'storage_full', message: 'no room' })
	link.end({ status: 'stopped' })
})

void t.test('an abort rejects the calls under way and all later ones', async (t) => {
	const { main, port } = makeEnds(t)
	const link = openLink(port)
	const call = link.call('model', { answer })
	main.say({ kind: 'abort', reason: 'enough' })
	await t.rejects(call, { code: 'stopped', message: 'enough' })
	t.equal(link.signal.reason, 'enough')
	await t.rejects(link.call('model', { answer }), { code: 'stopped' })
	link.end({ status: 'stopped' })
})

void t.test('an abort that was posted before is heard at once', (t) => {
	const { main, port } = makeEnds(t)
	main.say({ kind: 'abort', reason: 'enough' })
	const link = openLink(port)
	t.ok(link.signal.aborted)
	link.end({ status: 'stopped' })
	t.end()
})

void t.test('a main thread that lets go of the run aborts it', async (t) => {
	const { main, port } = makeEnds(t)
	const link = openLink(port)
	const aborted = once(link.signal, 'abort')
	main.port.close()
	await aborted
	t.match(link.signal.reason, /let go/)
})
