const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** The milliseconds of a text such as `30m`, in one of these units; NaN for any other text. */
export function durationIn(text: string, units = 'smhd'): number {
	const [, count, unit = ''] = /^(\d{1,9})([a-z])$/.exec(text) ?? []
	return units.includes(unit) ? Number(count) * UNITS[unit as keyof typeof UNITS] : Number.NaN
}
