/** The rate of reports about refused requests. */
import t from 'tap'
import { openNotices } from '../../../core/events/notices.ts'
import type { Untold } from '../../../core/events/notices.ts'
import { MINUTE_MS } from '../../../core/util/token-buckets.ts'

function start(atOnce: number) {
	let now = 0
	const reported: (Untold & { id: string; n: number })[] = []
	let reportRest = (): void => {}
	const every = (_: number, work: () => void): void => void (reportRest = work)
	const notice = openNotices(atOnce, { every, clock: () => now })
	return {
		reported,
		reportRest,
		wait: (minutes: number) => void (now += minutes * MINUTE_MS),
		refuse(id: string, times: number, sourceOf?: (n: number) => string) {
			for (let n = 0; n < times; n++) notice(id, (untold) => reported.push({ id, n, ...untold }), sourceOf?.(n))
		},
	}
}

void t.test('thirty are reported at once, then one per minute with the number of the others', async (t) => {
	const { reported, refuse, wait } = start(30)
	refuse('a', 100)
	t.strictSame(
		reported,
		Array.from({ length: 30 }, (_, n) => ({ id: 'a', n })),
	)
	refuse('b', 1)
	t.equal(reported.length, 31, 'each id has its own limit')
	wait(1)
	refuse('a', 3)
	t.strictSame(reported.slice(31), [{ id: 'a', n: 0, untold: 70 }])
})

void t.test('a month of refusals is reported once a minute', async (t) => {
	const { reported, refuse, wait, reportRest } = start(60)
	for (let minute = 0; minute < 30 * 24 * 60; minute++) {
		refuse('a', 5)
		reportRest()
		wait(1)
	}
	t.ok(reported.length < 60 + 30 * 24 * 60 + 1, `${reported.length} reports`)
	const untold = reported.reduce((all, { untold: count = 0 }) => all + count, 0)
	t.ok(reported.length + untold >= 5 * 30 * 24 * 60 - 5, 'all except those of the last minute are counted')
})

void t.test('if no refusal follows, the rest is reported with number, start and sources', async (t) => {
	const { reported, refuse, wait, reportRest } = start(2)
	const before = new Date().toISOString()
	refuse('a', 102, (n) => `192.0.2.${n % 40}`)
	reportRest()
	t.equal(reported.length, 2, 'not within the same minute')
	wait(1)
	reportRest()
	const [, , last] = reported
	t.match(last, { id: 'a', n: 101, untold: 99 })
	t.strictSame(
		last?.sources,
		Array.from({ length: 16 }, (_, n) => `192.0.2.${n + 2}`),
	)
	t.ok(before <= (last?.since ?? '') && (last?.since ?? '') <= new Date().toISOString())
	wait(5)
	reportRest()
	t.equal(reported.length, 3, 'once')
	refuse('a', 1)
	t.strictSame(reported[3], { id: 'a', n: 0 })
})
