/** Units of the dialogue with chats: marks, thrown values, texts, notices, the transmission of one message. */
import t from 'tap'
import { openChatQueues } from '../../../../plugins/channels/dialogue/chat-queues.ts'
import { openPlatforms } from '../../../../plugins/channels/dialogue/platforms.ts'
import { openNotices } from '../../../../plugins/channels/dialogue/notices.ts'
import { openPace } from '../../../../plugins/channels/dialogue/pace.ts'
import { texts } from '../../../../plugins/channels/dialogue/texts.ts'
import { markOf, readAdapterError } from '../../../../plugins/channels/dialogue/adapter-values.ts'
import { transmit } from '../../../../plugins/channels/dialogue/transmit.ts'
import type { SendOutcome, TransmitOptions } from '../../../../plugins/channels/dialogue/transmit.ts'
import type { Connection } from '../../../../plugins/channels/adapter.ts'
import type { LiveChannel } from '../../../../plugins/channels/parts.ts'
import type { Registry } from '../../../../plugins/channels/registry.ts'
import { eventually } from '../../../support/wait.ts'

// The timers under test do not keep the process running.
const keepAlive = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(keepAlive))

const chat = { id: 'a-chat', kind: 'private' } as const

const boom = (): never => {
	throw new Error('boom')
}
const trap = Object.defineProperty(new Error('x'), 'code', { get: boom })
/** Values that an adapter may throw. */
const thrownValues = [undefined, null, 7, '', {}, Object.create(null), trap, new Proxy({}, { get: boom }), Symbol('s')]

/** The gateway's side of one channel. `connection`: undefined while it is not connected. */
function openSide(connection?: Partial<Connection>) {
	const delays: unknown[] = []
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
	const registry = {
		channel: () => live,
		delayed: (_id, _message, why) => void delays.push(why),
	} as Partial<Registry> as Registry
	const warnings: string[] = []
	const log = { info() {}, debug() {}, error() {}, warn: (text: string) => void warnings.push(text) }
	const redactor = { text: (text: string) => text }
	const { signal } = giveUp
	const ctx = { log, redactor, signal } as unknown as Parameters<typeof openNotices>[0]['ctx']
	return {
		ctx,
		platforms: openPlatforms(registry, signal),
		pace: openPace(),
		warnings,
		delays,
		end: () => giveUp.abort(),
	}
}

function sendHello(
	side: ReturnType<typeof openSide>,
	persist: TransmitOptions['persist'] = async () => {},
): Promise<SendOutcome> {
	return transmit(side, {
		channel_id: 'c',
		chat,
		nonce: 'n',
		source: 'hello',
		place: { offset: 0, fence: null },
		attempt: null,
		preview: null,
		until: Date.now() + 3_600_000,
		persist,
	})
}

void t.test('any thrown value can be read', async (t) => {
	for (const thrown of thrownValues) {
		const { code, message, retry_after_ms } = readAdapterError(thrown)
		t.equal(code, undefined)
		t.ok(message)
		t.equal(retry_after_ms, 0)
	}
	const limited = Object.assign(new Error('slow'), { code: 'limited', retry_after_ms: 5 })
	t.strictSame(readAdapterError(limited), { code: 'limited', message: 'slow', retry_after_ms: 5 })
	for (const retry_after_ms of [Number.NaN, -1e9, 'soon', null])
		t.equal(readAdapterError({ code: 'limited', retry_after_ms }).retry_after_ms, 0)
	t.equal(readAdapterError({ code: 'else' }).code, undefined)
})

void t.test('a message is sent after any thrown value, without its invalid mark', async (t) => {
	const attempt = async (thrown: unknown): Promise<void> => {
		let calls = 0
		const side = openSide({
			mark: () => 'm'.repeat(257),
			find: async () => (calls === 1 ? { id: 'found' } : undefined),
			send: () => (calls++ === 0 ? Promise.reject(thrown as Error) : boom()),
		})
		const marks: unknown[] = []
		const outcome = await sendHello(side, async (next) => void marks.push(next?.mark))
		t.match(outcome, { status: 'sent', id: 'found' })
		t.strictSame(marks, [undefined])
		t.equal(side.warnings.length, 1)
	}
	await Promise.all([undefined, null, trap].map(attempt))
})

void t.test('a message that waits long is reported as delayed until it is sent or given up', async (t) => {
	let attempts = 0
	const side = openSide({
		send() {
			attempts++
			throw Object.assign(new Error('slow down'), { code: 'limited', retry_after_ms: attempts === 1 ? 1 : 60_000 })
		},
	})
	const sending = sendHello(side)
	await eventually(() => side.delays.length > 0)
	t.equal(attempts, 2, 'a short wait is not reported')
	side.end()
	await t.rejects(sending)
	t.strictSame(side.delays, ['slow down', null])
})

void t.test('a message that was not sent in time is reported with the last error', async (t) => {
	const side = openSide({
		send() {
			side.platforms.forget('c') // no more attempts, as after the deadline
			throw Object.assign(new Error('out of order'), { code: 'failed' })
		},
	})
	t.strictSame(await sendHello(side), { status: 'late', message: 'out of order' })
})

void t.test('an invalid mark is omitted, and reported once per connection', async (t) => {
	const warnings: unknown[] = []
	const log = { warn: (text: unknown) => void warnings.push(text) }
	for (const mark of [() => 'm'.repeat(257), () => 7, boom]) {
		const connection = { mark } as unknown as Connection
		for (let n = 0; n < 3; n++) t.equal(markOf(connection, chat, log), undefined)
	}
	t.equal(warnings.length, 3)
	t.equal(markOf({ mark: () => 'm'.repeat(256) } as unknown as Connection, chat, log), 'm'.repeat(256))
	t.equal(markOf({} as Connection, chat, log), undefined)
})

void t.test('at most 100 hints wait in a channel', async (t) => {
	const side = openSide()
	const queues = openChatQueues(side.ctx.log)
	const notices = openNotices(side, queues)
	let hints = 0
	for (let n = 0; n < 150; n++) {
		if (!notices.mayHint('c', `stranger-${n}`)) continue
		hints++
		notices.hint('c', { id: `stranger-${n}`, kind: 'private' }, 'hello')
	}
	t.equal(hints, 100)
	t.equal(notices.mayHint('another', 'stranger'), true)
	side.platforms.forget('c')
	await queues[Symbol.asyncDispose]()
	t.equal(notices.mayHint('c', 'stranger-149'), true, 'there is room again')
})

void t.test('line ends of a question become LF, as in an answer', async (t) => {
	t.equal(texts.question({ question: 'a\r\nb\rc\nd' }), 'a\nb\nc\nd')
	const withOptions = texts.question({ question: 'a\rb', options: ['one\rline', 'two'] })
	t.match(withOptions, /^a\nb\n\n1\. one line\n2\. two\n/)
	t.notMatch(withOptions, /\r/)
})
