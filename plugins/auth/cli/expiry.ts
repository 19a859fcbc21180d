import { CliError } from '../../../core/cli/contract.ts'

const MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** When a token expires: a duration from now such as `30d`, or a point in time, which the gateway validates. */
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
	if (ms === 0) throw new CliError('usage', '--ttl must be greater than 0')
	return new Date(now + ms).toISOString()
}
