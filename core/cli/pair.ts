import { CliError } from './contract.ts'

/** The parts of an option's value before and after its first colon. Throws a `CliError` where one is empty. */
export function pairIn(text: string, option: string, example: string): [first: string, second: string] {
	const at = text.indexOf(':')
	if (at < 1 || at === text.length - 1)
		throw new CliError('usage', `${option} takes two parts with a colon between, such as ${example}`)
	return [text.slice(0, at), text.slice(at + 1)]
}
