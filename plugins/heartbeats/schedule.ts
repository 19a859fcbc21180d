/** Schedules: validates requests, and computes the next beat. */
import { Cron } from 'croner'
import { messageOf } from '../../core/errors.ts'
import { durationIn } from '../../core/util/duration.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { isTimeZone } from '../shared/time-zone.ts'
import { instantOf } from './instant.ts'
import type { HeartbeatRequest, Schedule } from './contract.ts'

const SHORTEST_MS = 60_000
const LONGEST_DAYS = 366
const LONGEST_AT_DAYS = 3_653
const DAY_MS = 86_400_000

/** Validates a schedule. `usual`: the default timezone of `cron`, and of an `at` without an offset. Throws `invalid_request`. */
export function scheduleOf(
	{ cron, timezone, every, at }: Omit<HeartbeatRequest, 'prompt'>,
	now: number,
	usual?: string,
): Schedule {
	const given = Object.entries({ cron, every, at }).flatMap(([name, value]) => (value === undefined ? [] : [name]))
	if (given.length === 0) throw invalidField('', 'give cron, every or at')
	if (given.length > 1)
		throw invalidField(given[1] ?? '', `give only one of cron, every and at, not ${given.join(' and ')}`)
	if (timezone !== undefined && !isTimeZone(timezone)) {
		throw invalidField(
			'timezone',
			`timezone "${timezone}" is not known; give an IANA name such as Europe/Berlin or UTC`,
		)
	}
	if (at !== undefined) return { cron: null, timezone: null, every: null, at: futureTime(at, timezone ?? usual, now) }
	if (every !== undefined) {
		if (timezone !== undefined)
			throw invalidField('timezone', 'a timezone can be given with cron or at only; every counts from now')
		checkEvery(every)
		return { cron: null, timezone: null, every, at: null }
	}
	const schedule = { cron: (cron ?? '').trim(), timezone: timezone ?? usual ?? 'UTC', every: null, at: null }
	checkCron(schedule, now)
	return schedule
}

/**
 * The first beat after `now`, both in milliseconds since 1970. `due` is the beat before it, or when the heartbeat was made.
 * Undefined if there is none.
 */
export function nextBeat(
	schedule: Pick<Schedule, 'cron' | 'timezone' | 'every'> & { at?: string | null },
	due: number,
	now: number,
): number | undefined {
	if (typeof schedule.at === 'string') return Date.parse(schedule.at) > now ? Date.parse(schedule.at) : undefined
	if (schedule.every === null) return parse(schedule).nextRun(new Date(now))?.getTime()
	const interval = durationIn(schedule.every)
	// A late timer does not shift later beats. After a pause the interval starts anew.
	return (now - due < SHORTEST_MS ? due : now) + interval
}

function futureTime(at: string, timezone: string | undefined, now: number): string {
	const time = instantOf(at, timezone, now)
	if (time === undefined)
		throw invalidField('at', 'at must be a time such as 2030-03-31T09:00:00+02:00, or such as "in 20 minutes"')
	if (time === 'local')
		throw invalidField('at', 'at needs an offset, such as 2030-03-31T09:00:00+02:00 or …Z, or a timezone beside it')
	if (time <= now) throw invalidField('at', `at is in the past: it is ${new Date(now).toISOString()} now`)
	if (time > now + LONGEST_AT_DAYS * DAY_MS) throw invalidField('at', 'at must be within ten years')
	return new Date(time).toISOString()
}

function checkEvery(every: string): void {
	const interval = durationIn(every)
	if (!(interval >= SHORTEST_MS)) {
		throw invalidField('every', 'every must be a whole number with s, m, h or d, such as 30m, and at least one minute')
	}
	if (interval > LONGEST_DAYS * DAY_MS) throw invalidField('every', `every must be at most ${LONGEST_DAYS}d`)
}

function checkCron(schedule: Schedule, now: number): void {
	const { cron } = schedule
	const fields = (cron ?? '').split(/\s+/).length
	if (fields !== 5 && fields !== 6)
		throw invalidField(
			'cron',
			`cron must have five fields (minute hour day month weekday), such as "0 9 * * 1-5", or six with seconds in front`,
		)
	let beats: Date[]
	try {
		beats = parse(schedule).nextRuns(3, new Date(now))
	} catch (error) {
		throw invalidField('cron', `cron "${cron}" is not a pattern: ${messageOf(error).replace(/^CronPattern: /, '')}`)
	}
	if (beats.length === 0) throw invalidField('cron', `cron "${cron}" never matches`)
	// If the seconds field has two values, two of any three successive beats are in the same minute.
	const tooClose = beats.some((beat, n) => n > 0 && beat.getTime() - (beats[n - 1]?.getTime() ?? 0) < SHORTEST_MS)
	if (tooClose) throw invalidField('cron', `cron "${cron}" fires more than once a minute; name at most one second`)
}

/** A beat at a time that the clock skips fires right after the gap. A fixed time that occurs twice fires once. */
function parse({ cron, timezone }: Pick<Schedule, 'cron' | 'timezone'>): Cron {
	return new Cron(cron ?? '', { paused: true, mode: '5-or-6-parts', timezone: timezone ?? 'UTC' })
}
