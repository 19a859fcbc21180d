const units: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `12h` becomes the time that long ago; anything else is returned unchanged, as is a time that is too long ago for a date. */
export function pointInTime(text: string): string {
	const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
	const time = new Date(Date.now() - Number(count) * (units[unit] ?? 0))
	return Number.isNaN(time.getTime()) ? text : time.toISOString()
}
