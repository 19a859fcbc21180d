import { CliError } from './contract.ts'

const MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** When a token ends: a distance such as `30d` from now, or a point in time, which the gateway judges. */
export function expiryOf(text: string, now = Date.now()): string {
	const [, digits, unit] = /^(\d{1,6})([mhdw])$/.exec(text) ?? []
	if (digits === undefined) {
		if (/^\d{4}-/.test(text)) return text
		throw new CliError(
			'usage',
			'--ttl must be a number with m, h, d or w, such as 30d, or a time: 2030-01-31T12:00:00Z',
		)
	}
	const ms = Number(digits) * MS[unit as keyof typeof MS]
	if (ms === 0) throw new CliError('usage', '--ttl must be more than nothing')
	return new Date(now + ms).toISOString()
}
