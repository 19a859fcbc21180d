/** The times of beats, in many timezones and when clocks change. */
import fc from 'fast-check'
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import { nextBeat, scheduleOf } from '../../../plugins/heartbeats/schedule.ts'

const MINUTE_MS = 60_000
const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'Pacific/Apia']

/** The next beats after a time, as ISO 8601. */
function beats(wanted: { cron?: string; timezone?: string; every?: string }, from: string, count: number): string[] {
	const start = Date.parse(from)
	const schedule = scheduleOf(wanted, start)
	const found: string[] = []
	for (let due = start; found.length < count;) {
		due = nextBeat(schedule, due, due) ?? Infinity
		found.push(new Date(due).toISOString().replace(':00.000Z', 'Z'))
	}
	return found
}

void t.test('a cron pattern follows the local time of its timezone', async (t) => {
	const berlin = { timezone: 'Europe/Berlin' }
	t.strictSame(
		beats({ cron: '0 9 * * *', ...berlin }, '2026-03-27T12:00Z', 3),
		['2026-03-28T08:00Z', '2026-03-29T07:00Z', '2026-03-30T07:00Z'],
		'the clocks change to summer time on the 29th',
	)
	t.strictSame(
		beats({ cron: '30 2 * * *', ...berlin }, '2026-03-28T12:00Z', 2),
		['2026-03-29T01:00Z', '2026-03-30T00:30Z'],
		'02:30 does not exist on the 29th, so it beats right after the gap',
	)
	t.strictSame(
		beats({ cron: '30 2 * * *', ...berlin }, '2026-10-24T12:00Z', 2),
		['2026-10-25T00:30Z', '2026-10-26T01:30Z'],
		'02:30 exists twice on the 25th, but beats once',
	)
	t.strictSame(
		beats({ cron: '*/30 * * * *', ...berlin }, '2026-10-25T00:00Z', 4),
		['2026-10-25T00:30Z', '2026-10-25T01:00Z', '2026-10-25T01:30Z', '2026-10-25T02:00Z'],
		'a step pattern keeps its interval',
	)
	t.strictSame(
		beats({ cron: '0,30 2 * * *', ...berlin }, '2026-10-24T12:00Z', 4),
		['2026-10-25T00:00Z', '2026-10-25T00:30Z', '2026-10-25T01:00Z', '2026-10-25T01:30Z'],
		'a list beats at both occurrences of a time',
	)
	t.strictSame(
		beats({ cron: '0,30 2 * * *', ...berlin }, '2026-03-28T12:00Z', 1),
		['2026-03-30T00:00Z'],
		'a list does not beat at times that do not exist',
	)
	t.strictSame(
		beats({ cron: '0 9 * * 1-5' }, '2026-11-20T12:00Z', 1),
		['2026-11-23T09:00Z'],
		'the default timezone is UTC',
	)
	t.strictSame(beats({ cron: '15 0 9 * * *' }, '2026-11-20T12:00Z', 1), ['2026-11-21T09:00:15.000Z'], 'six fields')
	t.strictSame(beats({ cron: '0 0 29 2 *' }, '2026-11-20T12:00Z', 1), ['2028-02-29T00:00Z'])
})

void t.test('an interval counts from the previous beat, and restarts after a pause', async (t) => {
	t.strictSame(beats({ every: '90m' }, '2026-11-20T12:00Z', 3), [
		'2026-11-20T13:30Z',
		'2026-11-20T15:00Z',
		'2026-11-20T16:30Z',
	])
	const schedule = scheduleOf({ every: '1h' }, 0)
	t.equal(nextBeat(schedule, 1_000, 1_500), 3_601_000, 'a late timer does not shift the next ones')
	t.equal(nextBeat(schedule, 1_000, 10_000_000), 13_600_000)
})

void t.test('beats are in the future, and at most one per minute', async (t) => {
	const field = (min: number, max: number): fc.Arbitrary<string> =>
		fc.oneof(
			fc.constant('*'),
			fc.integer({ min, max }).map(String),
			fc.integer({ min: 2, max: Math.max(3, max >> 1) }).map((step) => `*/${step}`),
			fc.array(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map((list) => list.join(',')),
		)
	const pattern = fc.tuple(
		fc.option(field(0, 59), { freq: 2 }),
		field(0, 59),
		field(0, 23),
		fc.constantFrom('*', '1', '31', '29', 'L'),
		field(1, 12),
		fc.constantFrom('*', '0', '1-5', 'SUN', '5#5'),
	)
	const start = Date.parse('2026-01-01T00:00:00Z')
	let accepted = 0
	let rejected = 0
	fc.assert(
		fc.property(
			pattern,
			fc.constantFrom(...zones),
			fc.integer({ min: 0, max: 400 * 24 * 60 }),
			([seconds, ...fields], timezone, minutes) => {
				const cron = [...(seconds === null ? [] : [seconds]), ...fields].join(' ')
				let due = start + minutes * MINUTE_MS
				try {
					const schedule = scheduleOf({ cron, timezone }, due)
					accepted++
					for (let n = 0; n < 20; n++) {
						const next = nextBeat(schedule, due, due)
						if (next === undefined) break
						if (next <= due || (n > 0 && next - due < MINUTE_MS)) return false
						due = next
					}
					return true
				} catch (error) {
					rejected++
					return isFault(error, 'invalid_request')
				}
			},
		),
		{ numRuns: 100 },
	)
	t.ok(accepted > 20 && rejected > 5, `${accepted} accepted, ${rejected} rejected`)
})

void t.test('at is one time: with an offset, in a timezone, or relative to now', async (t) => {
	const now = Date.parse('2026-11-23T12:00:00Z')
	const times: [string, string | undefined, string][] = [
		['2026-11-24T09:00Z', undefined, '2026-11-24T09:00:00.000Z'],
		['2026-11-24T09:00:00.5+0200', undefined, '2026-11-24T07:00:00.500Z'],
		['2026-11-24T09:00+02:00', 'Asia/Tokyo', '2026-11-24T07:00:00.000Z'],
		[' 2026-11-24 09:00:05', 'Asia/Tokyo', '2026-11-24T00:00:05.000Z'],
		['2027-10-31T02:30', 'Europe/Berlin', '2027-10-31T00:30:00.000Z'],
		['2027-03-28T02:30', 'Europe/Berlin', '2027-03-28T01:30:00.000Z'],
		['in 20 minutes', undefined, '2026-11-23T12:20:00.000Z'],
		['In 1 hour  30 minutes', undefined, '2026-11-23T13:30:00.000Z'],
		['in 2 weeks, 3 days and 1 second', undefined, '2026-12-10T12:00:01.000Z'],
	]
	for (const [at, timezone, expected] of times) {
		const schedule = scheduleOf({ at, ...(timezone !== undefined && { timezone }) }, now)
		t.strictSame(schedule, { cron: null, timezone: null, every: null, at: expected }, at)
		t.equal(nextBeat(schedule, now, now), Date.parse(expected))
		t.equal(nextBeat(schedule, now, Date.parse(expected)), undefined, 'once')
	}
	const invalid: [string, RegExp][] = [
		['tomorrow', /such as 2030/],
		['in five minutes', /such as 2030/],
		['in 20 minutes or so', /such as 2030/],
		['2026-11-24', /such as 2030/],
		['2027-02-31T09:00Z', /such as 2030/],
		['2026-11-24T25:00Z', /such as 2030/],
		['2026-11-24T09:00', /needs an offset/],
		['2026-11-23T11:59Z', /in the past: it is 2026-11-23T12:00:00.000Z now/],
		['in 0 seconds', /in the past/],
		['in 999999 weeks', /within ten years/],
	]
	for (const [at, message] of invalid)
		t.throws(() => scheduleOf({ at }, now), { code: 'invalid_request', message, errors: [{ path: 'at' }] }, at)
	t.throws(() => scheduleOf({ at: '2026-11-24T09:00', timezone: 'Mars' }, now), { errors: [{ path: 'timezone' }] })
	t.throws(() => scheduleOf({ at: 'in 1 hour', every: '1h' }, now), { message: /only one of .* not every and at/ })
})
