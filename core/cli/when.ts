/** A point in time as a person reads it, in the time zone of this machine: `2030-01-31 13:00:05`. `-` if there is none. */
export function when(iso: string | null | undefined): string {
	if (!iso) return '-'
	const time = new Date(iso)
	const date = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-')
	const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')
	return `${date} ${clock}`
}

/** The same with the zone, for a time that is often given in another one: `2030-01-31 13:00:05 GMT+1`. */
export function whenWithZone(iso: string | null | undefined): string {
	if (!iso) return '-'
	const parts = new Intl.DateTimeFormat('en-US', { timeZoneName: 'short' }).formatToParts(new Date(iso))
	return `${when(iso)} ${parts.find(({ type }) => type === 'timeZoneName')?.value ?? ''}`.trimEnd()
}

/** With milliseconds: `2030-01-31 13:00:05.250`. Without the date if it is today's, unless `dated`. */
export function moment(iso: string, { dated }: { dated: boolean }): string {
	const whole = `${when(iso)}.${String(new Date(iso).getMilliseconds()).padStart(3, '0')}`
	const [today = ''] = when(new Date().toISOString()).split(' ')
	return dated || !whole.startsWith(today) ? whole : whole.slice(today.length + 1)
}

function two(n: number): string {
	return String(n).padStart(2, '0')
}
