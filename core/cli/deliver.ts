import { pairIn } from './pair.ts'

/** The value of an option `--deliver`: `none`, or a channel and a chat such as `telegram:42`. Throws a `CliError` for anything else. */
export function deliverIn(text: string): 'none' | { channel: string; chat: string } {
	if (text === 'none') return text
	const [channel, chat] = pairIn(text, '--deliver', 'telegram:42')
	return { channel, chat }
}
