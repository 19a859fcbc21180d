import { CliError } from './contract.ts'

/** The value of an option `--deliver`: `none`, or a channel and a chat such as `telegram:42`. Throws a `CliError` for anything else. */
export function deliverIn(text: string): 'none' | { channel: string; chat: string } {
	if (text === 'none') return text
	const [, channel, chat] = /^([^:]+):(.+)$/s.exec(text) ?? []
	if (channel === undefined || chat === undefined)
		throw new CliError('usage', '--deliver takes two parts with a colon between, such as telegram:42')
	return { channel, chat }
}
