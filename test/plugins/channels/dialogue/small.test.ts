/** The small parts of talking with chats: marks, what was thrown, texts, notices, one message's way. */
import t from 'tap'
import { markOf } from '../../../../plugins/channels/dialogue/mark.ts'
import { openChatQueues } from '../../../../plugins/channels/dialogue/chat-queues.ts'
import { openPlatforms } from '../../../../plugins/channels/dialogue/platforms.ts'
import { openNotices } from '../../../../plugins/channels/dialogue/notices.ts'
import { openPace } from '../../../../plugins/channels/dialogue/pace.ts'
import { texts } from '../../../../plugins/channels/dialogue/texts.ts'
import { readThrown } from '../../../../plugins/channels/dialogue/thrown.ts'
import { transmit } from '../../../../plugins/channels/dialogue/transmit.ts'
import type { Connection } from '../../../../plugins/channels/adapter.ts'
import type { LiveChannel } from '../../../../plugins/channels/parts.ts'
import type { Registry } from '../../../../plugins/channels/registry.ts'

// What is waited for holds no process.
const held = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(held))

const chat = { id: 'a-chat', kind: 'private' } as const

/** What thrown things an adapter may come up with. */
const boom = (): never => {
	throw new Error('boom')
}
const trap = Object.defineProperty(new Error('x'), 'code', { get: boom })
const oddities = [undefined, null, 7, '', {}, Object.create(null), trap, new Proxy({}, { get: boom }), Symbol('s')]

/** A gateway's half of one channel. `connection`: undefined while it is not connected. */
function wayTo(connection?: Partial<Connection>) {
	const giveUp = new AbortController()
	t.teardown(() => giveUp.abort())
	const live: LiveChannel = {
		id: 'c',
		type: 'x',
		label: 'X',
		can: { formats: [{ markup: 'plain', max_length: 2_000 }], pace: { chat_ms: 0, channel_ms: 0 } },
		config: {},
		connection: () => connection as Connection | undefined,
	}
	const registry = { channel: () => live } as Partial<Registry> as Registry
	const warnings: string[] = []
	const log = { info() {}, debug() {}, error() {}, warn: (text: string) => void warnings.push(text) }
	const redactor = { text: (text: string) => text }
	const { signal } = giveUp
	const ctx = { log, redactor, signal } as unknown as Parameters<typeof openNotices>[0]['ctx']
	return { ctx, platforms: openPlatforms(registry, signal), pace: openPace(), warnings }
}

void t.test('whatever was thrown can be read', async (t) => {
	for (const thrown of oddities) {
		const { code, message, retry_after_ms } = readThrown(thrown)
		t.equal(code, undefined)
		t.ok(message)
		t.equal(retry_after_ms, 0)
	}
	const limited = Object.assign(new Error('slow'), { code: 'limited', retry_after_ms: 5 })
	t.strictSame(readThrown(limited), { code: 'limited', message: 'slow', retry_after_ms: 5 })
	for (const retry_after_ms of [Number.NaN, -1e9, 'soon', null])
		t.equal(readThrown({ code: 'limited', retry_after_ms }).retry_after_ms, 0)
	t.equal(readThrown({ code: 'else' }).code, undefined)
})

void t.test('a message goes out whatever was thrown before, and with a mark that can be kept or none', async (t) => {
	const attempt = async (thrown: unknown): Promise<void> => {
		let calls = 0
		const way = wayTo({
			mark: () => 'm'.repeat(257),
			find: async () => (calls === 1 ? { id: 'found' } : undefined),
			send: () => (calls++ === 0 ? Promise.reject(thrown as Error) : boom()),
		})
		const marks: unknown[] = []
		const outcome = await transmit(way, {
			channel_id: 'c',
			chat,
			nonce: 'n',
			source: 'hello',
			place: { offset: 0, fence: null },
			attempt: null,
			preview: null,
			until: Date.now() + 60_000,
			persist: async (next) => void marks.push(next?.mark),
		})
		t.match(outcome, { status: 'sent', id: 'found' })
		t.strictSame(marks, [undefined])
		t.equal(way.warnings.length, 1)
	}
	await Promise.all([undefined, null, trap].map(attempt))
})

void t.test('a mark that is none is left out, and told of once', async (t) => {
	const told: unknown[] = []
	const log = { warn: (text: unknown) => void told.push(text) }
	for (const mark of [() => 'm'.repeat(257), () => 7, boom]) {
		const connection = { mark } as unknown as Connection
		for (let n = 0; n < 3; n++) t.equal(markOf(connection, chat, log), undefined)
	}
	t.equal(told.length, 3)
	t.equal(markOf({ mark: () => 'm'.repeat(256) } as unknown as Connection, chat, log), 'm'.repeat(256))
	t.equal(markOf({} as Connection, chat, log), undefined)
})

void t.test('of hints no more than a hundred wait in a channel', async (t) => {
	const way = wayTo()
	const queues = openChatQueues(way.ctx.log)
	const notices = openNotices(way, queues)
	let hints = 0
	for (let n = 0; n < 150; n++) {
		if (!notices.mayHint('c', `stranger-${n}`)) continue
		hints++
		notices.hint('c', { id: `stranger-${n}`, kind: 'private' }, 'hello')
	}
	t.equal(hints, 100)
	t.equal(notices.mayHint('another', 'stranger'), true)
	way.platforms.forget('c')
	await queues[Symbol.asyncDispose]()
	t.equal(notices.mayHint('c', 'stranger-149'), true, 'there is room again')
})

void t.test('a question has its lines ended as an answer has', async (t) => {
	t.equal(texts.question({ question: 'a\r\nb\rc\nd' }), 'a\nb\nc\nd')
	const withOptions = texts.question({ question: 'a\rb', options: ['one\rline', 'two'] })
	t.match(withOptions, /^a\nb\n\n1\. one line\n2\. two\n/)
	t.notMatch(withOptions, /\r/)
})
