import { someOf } from '../util/some-of.ts'
import { CliError } from './contract.ts'
import { matchesId } from './short-ids.ts'

interface Choice<T> {
	/** The term for an item, such as `skill`. */
	kind: string
	id(item: T): string
	/** Its names, the one to show first. */
	names(item: T): (string | null)[]
}

/**
 * The item of a list that a user means: the one with this id, else the only one with this name, else the only one whose id begins
 * or ends with it. Throws a `CliError` that lists the choices.
 */
export function pick<T>(list: readonly T[], wanted: string, { kind, id, names }: Choice<T>): T {
	const exact = list.find((one) => id(one) === wanted)
	if (exact !== undefined) return exact
	const named = list.filter((one) => names(one).includes(wanted))
	if (named.length > 1)
		throw new CliError('usage', `${named.length} have the name "${wanted}"; give an id: ${named.map(id).join(', ')}`)
	const matches = named.length > 0 ? named : list.filter((one) => matchesId(id(one), wanted))
	if (matches.length > 1)
		throw new CliError(
			'usage',
			`several ids begin or end with "${wanted}": ${matches.map(id).join(', ')}; type more characters`,
		)
	const [found] = matches
	if (found === undefined)
		throw new CliError(
			'not_found',
			`there is no ${kind} "${wanted}"; ${others(list.map((one) => names(one)[0] ?? id(one)))}`,
		)
	return found
}

const SHOWN = 20

function others(titles: string[]): string {
	return titles.length === 0 ? 'there are none' : `there are: ${someOf([...new Set(titles)], SHOWN)}`
}
