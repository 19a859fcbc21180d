import t from 'tap'
import { openPace } from '../../../../plugins/channels/dialogue/pace.ts'
import type { LiveChannel } from '../../../../plugins/channels/parts.ts'

const channelOf = (pace: object): LiveChannel => ({
	id: 'c',
	type: 'x',
	label: 'X',
	can: { formats: [], pace },
	config: {},
	connection: () => undefined,
})
const chat = (id: string, kind: 'private' | 'group' = 'private') => ({ id, kind })
// The timers under test do not keep the process running.
const keepAlive = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(keepAlive))
const { signal } = new AbortController()
/** Timers may be early by part of a millisecond. */
const EARLY_MS = 2

void t.test('messages of one chat keep an interval, in groups another one', async (t) => {
	const channel = channelOf({ chat_ms: 40, group_ms: 80, channel_ms: 0 })
	for (const [kind, least] of [
		['private', 40],
		['group', 80],
	] as const) {
		const pace = openPace()
		const began = performance.now()
		for (let n = 0; n < 3; n++) {
			await pace.take(channel, chat('a', kind), signal)
			t.ok(performance.now() - began >= n * least - EARLY_MS, kind)
		}
	}
})

void t.test('messages of all chats of a channel keep an interval', async (t) => {
	const pace = openPace()
	const channel = channelOf({ chat_ms: 5_000, channel_ms: 30 })
	const began = performance.now()
	const turns = ['a', 'b', 'c'].map((id) => pace.take(channel, chat(id), signal).then(() => performance.now() - began))
	for (const [n, time] of (await Promise.all(turns)).entries()) t.ok(time >= n * 30 - EARLY_MS)
})

void t.test('takeNow succeeds only without a wait, and an aborted wait rejects', async (t) => {
	const pace = openPace()
	const channel = channelOf({ chat_ms: 60_000, channel_ms: 0 })
	t.equal(pace.takeNow(channel, chat('a')), true)
	t.equal(pace.takeNow(channel, chat('a')), false)
	t.equal(pace.takeNow(channel, chat('b')), true)
	pace.hold(channel, chat('c'), 60_000)
	t.equal(pace.takeNow(channel, chat('c')), false)
	const giveUp = new AbortController()
	const waiting = pace.take(channel, chat('c'), giveUp.signal)
	giveUp.abort()
	await t.rejects(waiting)
})

void t.test('takeLast waits until no other message waits', async (t) => {
	const pace = openPace()
	const channel = channelOf({ chat_ms: 0, channel_ms: 5 })
	const order: string[] = []
	// No time passes until all of them wait.
	const { now } = performance
	t.teardown(() => (performance.now = now))
	const then = performance.now()
	performance.now = () => then
	pace.takeNow(channel, chat('first'))
	const hints = Array.from({ length: 20 }, (_, n) =>
		pace.takeLast(channel, chat(`stranger-${n}`), signal).then(() => order.push('hint')),
	)
	const answers = Array.from({ length: 3 }, (_, n) =>
		pace.take(channel, chat(`friend-${n}`), signal).then(() => order.push('answer')),
	)
	// Then one interval passes with each message, however late the timers are.
	performance.now = () => then + 5 * (order.length + 1)
	await Promise.all([...hints, ...answers])
	t.strictSame(order.slice(0, 3), ['answer', 'answer', 'answer'])
	t.equal(order.length, 23)
})

void t.test('a chat is blocked for at most ten seconds, whatever the platform requests', async (t) => {
	const pace = openPace()
	const channel = channelOf({ chat_ms: 0, channel_ms: 0 })
	pace.hold(channel, chat('a'), 2_200_000_000)
	t.equal(pace.takeNow(channel, chat('a')), false)
	const { now } = performance
	t.teardown(() => (performance.now = now))
	performance.now = () => now.call(performance) + 10_000
	t.equal(pace.takeNow(channel, chat('a')), true)
})
