import { InvalidArgumentError, Option } from 'commander'

/** An option that takes a whole number from 1 to `max`. */
export function countOption(
	flags: string,
	text: string,
	{ max, fallback }: { max: number; fallback?: number },
): Option {
	const option = new Option(flags, text).argParser((given: string) => {
		const count = /^\d{1,15}$/.test(given) ? Number(given) : NaN
		if (count >= 1 && count <= max) return count
		throw new InvalidArgumentError(`It must be a whole number from 1 to ${max}.`)
	})
	return fallback === undefined ? option : option.default(fallback)
}
