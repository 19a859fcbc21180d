import { CliError } from '../../../core/cli/contract.ts'
import { durationIn } from '../../../core/util/duration.ts'

/** When a token expires: a duration from now such as `30d`, or a point in time, which the gateway validates. */
export function expiryOf(text: string, now = Date.now()): string {
	const end = new Date(now + durationIn(text, 'mhdw'))
	if (Number.isNaN(end.getTime())) {
		if (/^\d{4}-/.test(text)) return text
		throw new CliError(
			'usage',
			'--ttl must be a number with m, h, d or w, such as 30d, or a time: 2030-01-31T12:00:00Z',
		)
	}
	if (end.getTime() === now) throw new CliError('usage', '--ttl must be greater than 0')
	return end.toISOString()
}
