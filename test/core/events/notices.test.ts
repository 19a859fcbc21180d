/** What is reported about refused requests, however many there are. */
import t from 'tap'
import { openNotices } from '../../../core/events/notices.ts'
import type { Untold } from '../../../core/events/notices.ts'
import { MINUTE_MS } from '../../../core/util/token-buckets.ts'

function start(atOnce: number) {
	let now = 0
	const told: (Untold & { id: string; n: number })[] = []
	let reportRest = (): void => {}
	const every = (_: number, work: () => void): void => void (reportRest = work)
	const notice = openNotices(atOnce, { every, clock: () => now })
	return {
		told,
		reportRest,
		wait: (minutes: number) => void (now += minutes * MINUTE_MS),
		refuse(id: string, times: number, sourceOf?: (n: number) => string) {
			for (let n = 0; n < times; n++) notice(id, (untold) => told.push({ id, n, ...untold }), sourceOf?.(n))
		},
	}
}

void t.test('thirty are reported at once, then one a minute with the number of the others', async (t) => {
	const { told, refuse, wait } = start(30)
	refuse('a', 100)
	t.strictSame(
		told,
		Array.from({ length: 30 }, (_, n) => ({ id: 'a', n })),
	)
	refuse('b', 1)
	t.equal(told.length, 31, 'each id has its own limit')
	wait(1)
	refuse('a', 3)
	t.strictSame(told.slice(31), [{ id: 'a', n: 0, untold: 70 }])
})

void t.test('a month of refusals is reported once a minute', async (t) => {
	const { told, refuse, wait, reportRest } = start(60)
	for (let minute = 0; minute < 30 * 24 * 60; minute++) {
		refuse('a', 5)
		reportRest()
		wait(1)
	}
	t.ok(told.length < 60 + 30 * 24 * 60 + 1, `${told.length} were told`)
	const untold = told.reduce((all, { untold: count = 0 }) => all + count, 0)
	t.ok(told.length + untold >= 5 * 30 * 24 * 60 - 5, 'all but those of the last minute are counted')
})

void t.test('the rest is reported if nothing follows: how many, since when, and from where', async (t) => {
	const { told, refuse, wait, reportRest } = start(2)
	const before = new Date().toISOString()
	refuse('a', 102, (n) => `192.0.2.${n % 40}`)
	reportRest()
	t.equal(told.length, 2, 'not before there is room for it')
	wait(1)
	reportRest()
	const [, , last] = told
	t.match(last, { id: 'a', n: 101, untold: 99 })
	t.strictSame(
		last?.sources,
		Array.from({ length: 16 }, (_, n) => `192.0.2.${n + 2}`),
	)
	t.ok(before <= (last?.since ?? '') && (last?.since ?? '') <= new Date().toISOString())
	wait(5)
	reportRest()
	t.equal(told.length, 3, 'once')
	refuse('a', 1)
	t.strictSame(told[3], { id: 'a', n: 0 })
})
