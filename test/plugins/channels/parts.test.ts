/** Units of the plugin: pairing codes, access, delays, messages, events of the state, failures. */
import fc from 'fast-check'
import t from 'tap'
import { checkAccess } from '../../../plugins/channels/access.ts'
import { adaptersOf } from '../../../plugins/channels/adapters.ts'
import { openBackoff } from '../../../plugins/channels/backoff.ts'
import { hashOf, newCode, openAmong, readCode, withCode } from '../../../plugins/channels/codes.ts'
import type { OpenCode } from '../../../plugins/channels/codes.ts'
import { failureOf } from '../../../plugins/channels/supervisor.ts'
import { readMessage } from '../../../plugins/channels/messages.ts'
import { openStateEvents } from '../../../plugins/channels/state-events.ts'
import { arbitraryText } from '../../support/arbitrary-text.ts'

const MINUTE = 60_000

void t.test('a code has eight of 32 characters, all equally likely, and none that resembles another', async (t) => {
	const counts = new Map<string, number>()
	const codes = Array.from({ length: 4_000 }, newCode)
	for (const code of codes) for (const letter of code) counts.set(letter, (counts.get(letter) ?? 0) + 1)
	t.equal([...counts.keys()].toSorted().join(''), '0123456789ABCDEFGHJKMNPQRSTVWXYZ')
	// 1,000 of each are expected; fair codes exceed these limits once in some 10^9 runs.
	for (const [letter, count] of counts) t.ok(count > 800 && count < 1_200, `${letter}: ${count}`)
	t.equal(new Set(codes).size, codes.length)
})

void t.test('a code is accepted in any spelling, and nothing else is', async (t) => {
	const code = '7K3N9QX0'
	for (const typed of [code, '7k3n9qx0', ' 7K3N-9QX0 ', '7 k 3 n 9 q x o', '7K3N--9QXO\n'])
		t.equal(readCode(typed), code)
	t.equal(readCode('IL1O0ABC'), '11100ABC')
	for (const typed of ['', '7K3N9QX', '7K3N9QX00', '7K3N9QXU', '7K3N9QX!', '７K3N9QX0', '7K3N9QX\0', 'ß7K3N9QX'])
		t.equal(readCode(typed), undefined, JSON.stringify(typed))
	fc.assert(
		fc.property(arbitraryText({ maxLength: 64 }), (text) => {
			const read = readCode(text)
			return read === undefined || readCode(read) === read
		}),
	)
	t.not(hashOf('a', code), hashOf('b', code), 'a code is invalid in another channel')
})

void t.test('a code is valid for ten minutes; a chat has at most three, a channel a thousand', async (t) => {
	let open: OpenCode[] = []
	for (let n = 0; n < 5; n++) open = withCode(open, { hash: `h${n}`, chat_id: 'chat' }, n)
	open = withCode(open, { hash: 'x', chat_id: 'other' }, 5)
	t.strictSame(
		open.map((one) => one.hash),
		['h2', 'h3', 'h4', 'x'],
	)
	t.equal(openAmong(open, 10 * MINUTE + 1).length, 4)
	t.equal(openAmong(open, 10 * MINUTE + 2).length, 3)
	t.equal(openAmong(open, 10 * MINUTE + 5).length, 0)
	let many: OpenCode[] = []
	for (let n = 0; n < 1_010; n++) many = withCode(many, { hash: `h${n}`, chat_id: `chat ${n}` }, n)
	t.equal(many.length, 1_000)
	t.equal(many.at(-1)?.hash, 'h1009')
	many = many.slice(0, -2)
	many = withCode(
		withCode(many, { hash: 'greedy-1', chat_id: 'greedy' }, 2_000),
		{ hash: 'greedy-2', chat_id: 'greedy' },
		2_001,
	)
	many = withCode(many, { hash: 'new', chat_id: 'newcomer' }, 2_002)
	t.strictSame(
		many.slice(-2).map((one) => one.hash),
		['greedy-2', 'new'],
		'a chat with several codes loses one first',
	)
	t.equal(many[0]?.hash, 'h10')
})

void t.test('without the scope *, a caller may set only what the adapter declares as unguarded', async (t) => {
	const adapterOf = (unguarded?: unknown) => {
		const can = { formats: [{ markup: 'plain', max_length: 100 }] }
		const value = { type: 'x', label: 'X', can, connect: () => {}, ...(unguarded !== undefined && { unguarded }) }
		const { all, problems } = adaptersOf([{ plugin: 'p', value }] as never)
		return { adapter: all.get('x'), problems }
	}
	const secrets = [{ id: 's', name: 'S', policy_label: 'channel' }] as never
	const check = (config: Record<string, unknown>, unguarded?: unknown) =>
		checkAccess({ bot_token_ref: 'S', config }, adapterOf(unguarded).adapter, secrets, { allowed_api_roots: ['ok'] })
	await check({ agent_id: 'a', answer: 'all', allowed_senders: [], api_root: 'http://ok/' })
	await check({ volume: 1 }, ['volume'])
	for (const [config, unguarded] of [
		[{ volume: 1 }, undefined],
		[{ volume: 1 }, ['Volume']],
		[{ volume: 1, server: 'http://evil' }, ['volume']],
		[{ constructor: 1 }, []],
	] as const)
		await t.rejects(check(config, unguarded), { code: 'forbidden', message: /^config\.\w+ requires the scope "\*"/ })
	await t.rejects(
		checkAccess({ bot_token_ref: 'S', config: { volume: 1 } }, undefined, secrets, { allowed_api_roots: [] }),
		{ code: 'forbidden' },
		'a type that no running plugin provides',
	)
	for (const unguarded of ['volume', [7], [''], ['volume', 'api_root'], null, Array(65).fill('a')])
		t.match(adapterOf(unguarded), { adapter: undefined, problems: [/unguarded/] }, JSON.stringify(unguarded))
})

void t.test('delays grow to their limit, and start over after a stable connection', async (t) => {
	const longest = openBackoff(60_000, () => 1)
	t.strictSame(
		Array.from({ length: 12 }, () => longest.next(0, 0)),
		[100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000],
	)
	t.equal(longest.next(59_999, 0), 60_000, 'an unstable connection does not reset the delay')
	t.equal(longest.next(60_000, 0), 100)
	t.equal(longest.next(0, 30_000), 30_000, 'the delay that the platform requests')
	t.equal(longest.next(0, 1e12), 3_600_000)
	longest.reset()
	t.equal(longest.next(0, 0), 100)
	t.equal(openBackoff(60_000, () => 0).next(0, 0), 50)
	const many = openBackoff(1_000, () => 1)
	for (let n = 0; n < 2_000; n++) many.next(0, 0)
	t.equal(many.next(0, 0), 1_000)
})

void t.test('a message is copied, truncated to the limits and made well-formed', async (t) => {
	const given = {
		id: 'm 1',
		chat: { id: '-100', kind: 'group', thread_id: '7', within: ['guild'], secret: 1 },
		sender: { id: 's', name: `\ud800${'n'.repeat(300)}` },
		text: `a${'ü'.repeat(60_000)}`,
		addressed: false,
		attachment: 'p'.repeat(300),
		cursor: '42',
		extra: 'not known',
	} as const
	const { text, sender, attachment, ...rest } = readMessage(given)
	t.strictSame(rest, {
		id: 'm 1',
		chat: { id: '-100', kind: 'group', thread_id: '7', within: ['guild'] },
		addressed: false,
		cursor: '42',
	})
	t.equal(text, `a${'ü'.repeat(51_199)}`, 'no character is cut in two')
	t.equal(sender.name, `\ufffd${'n'.repeat(255)}`)
	t.equal(attachment?.length, 256)
	t.equal(readMessage({ ...given, text: 'a\udc00b' }).text, 'a\ufffdb')
	const quoted = { text: 'q'.repeat(5_000), sender: 's'.repeat(300), own: false, id: 'not known' }
	t.strictSame(readMessage({ ...given, quoted }).quoted, {
		text: 'q'.repeat(4_096),
		sender: 's'.repeat(256),
		own: false,
	})
	t.strictSame(readMessage({ ...given, quoted: { text: '', sender: null } }).quoted, { text: '', sender: null })
	t.throws(() => readMessage({ ...given, quoted: { text: 5 } }), /quoted\.text/)
	fc.assert(
		fc.property(fc.anything(), (value) => {
			try {
				return typeof readMessage(value).text === 'string'
			} catch (error) {
				return error instanceof Error && error.message !== ''
			}
		}),
	)
})

void t.test('events report changes, each error once, and at most thirty at once', async (t) => {
	const reported: string[] = []
	const stop = new AbortController()
	t.teardown(() => stop.abort())
	const change = openStateEvents(
		async (type, { error, bot }) => void reported.push([type, error ?? bot].join(' ')),
		stop.signal,
	)
	const settled = () => new Promise((resolve) => setImmediate(resolve))
	const report = (connection: 'connected' | 'reconnecting' | 'error', last_error: string | null) =>
		change({ connection, bot: '@b', last_error })
	report('reconnecting', 'no route')
	report('reconnecting', 'no route')
	report('connected', null)
	report('connected', null)
	report('reconnecting', 'cut')
	report('reconnecting', 'cut')
	report('error', 'refused')
	await settled()
	t.strictSame(reported, [
		'channel.error no route',
		'channel.connected @b',
		'channel.disconnected cut',
		'channel.error refused',
	])
	for (let n = 0; n < 200; n++) {
		report(n % 2 === 0 ? 'connected' : 'reconnecting', n % 2 === 0 ? null : `error ${n}`)
		await settled()
	}
	t.equal(reported.length, 30)
})

void t.test('any thrown value becomes a message without the token', async (t) => {
	t.match(failureOf(new Error('x'), 'tok'), { message: 'x', refused: false, retry_after_ms: 0 })
	t.match(failureOf(Object.assign(new Error('bad tok!'), { code: 'refused' }), 'tok'), {
		message: 'bad [token]!',
		refused: true,
	})
	t.equal(failureOf(Object.assign(new Error('slow'), { code: 'limited', retry_after_ms: 5 }), 'tok').retry_after_ms, 5)
	const trap = new Proxy(
		{},
		{
			get: () => {
				throw new Error('trap')
			},
		},
	)
	for (const thrown of [undefined, null, 7, '', {}, Object.create(null), trap, new Error(''), Symbol('s')]) {
		const { message } = failureOf(thrown, 'tok')
		t.ok(message.length > 0 && message.length <= 500, message)
	}
})
