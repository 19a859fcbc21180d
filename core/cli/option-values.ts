/** The values of options that several commands have. */
import { durationIn } from '../util/duration.ts'
import { CliError } from './contract.ts'

/** `12h` becomes the time that long ago; a time in ISO 8601 is returned unchanged. Throws a usage error for anything else. */
export function pointInTime(text: string): string {
	// A time that is too long ago is not a valid date.
	const time = new Date(Date.now() - durationIn(text))
	if (!Number.isNaN(time.getTime())) return time.toISOString()
	if (/^\d{4}-\d\d-\d\d/.test(text)) return text
	throw new CliError(
		'usage',
		`"${text}" is not a time; write 2030-01-31, 2030-01-31T12:00:00Z, or how long ago: 30m, 12h, 7d`,
	)
}

/** The value of an option `--deliver`: `none`, or a channel and a chat such as `telegram:42`. Throws a `CliError` for anything else. */
export function deliverIn(text: string): 'none' | { channel: string; chat: string } {
	if (text === 'none') return text
	const [, channel, chat] = /^([^:]+):(.+)$/s.exec(text) ?? []
	if (channel === undefined || chat === undefined)
		throw new CliError('usage', '--deliver takes two parts with a colon between, such as telegram:42')
	return { channel, chat }
}
