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
// What is waited for holds no process.
const held = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(held))
const { signal } = new AbortController()
/** Timers may be early by part of a millisecond. */
const EARLY_MS = 2

async function gapsOf(turns: Promise<void>[]): Promise<number[]> {
	const times = await Promise.all(turns.map((turn) => turn.then(() => performance.now())))
	return times.slice(1).map((time, n) => time - (times[n] ?? 0))
}

void t.test('messages of one chat keep their distance, in groups a distance of their own', async (t) => {
	const channel = channelOf({ chat_ms: 40, group_ms: 80, channel_ms: 0 })
	for (const [kind, least] of [
		['private', 40],
		['group', 80],
	] as const) {
		const pace = openPace()
		const times: number[] = []
		for (let n = 0; n < 3; n++) {
			await pace.take(channel, chat('a', kind), signal)
			times.push(performance.now())
		}
		for (const n of [1, 2]) t.ok((times[n] ?? 0) - (times[n - 1] ?? 0) >= least - EARLY_MS, kind)
	}
})

void t.test('so do messages of all chats of a channel', async (t) => {
	const pace = openPace()
	const channel = channelOf({ chat_ms: 5_000, channel_ms: 30 })
	const gaps = await gapsOf(['a', 'b', 'c'].map((id) => pace.take(channel, chat(id), signal)))
	for (const gap of gaps) t.ok(gap >= 30 - EARLY_MS)
})

void t.test('what needs no waiting goes at once, or not at all', async (t) => {
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
