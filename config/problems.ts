import { Fault } from '../core/errors.ts'
import { excerpt } from '../core/util/excerpt.ts'

/** A position in the file, counted from 1 as in editors. */
export interface Position {
	line: number
	column: number
}

/** One mistake. `where`: the position in the file, or the environment variable with the value. */
export interface Problem {
	path: string
	message: string
	where: Position | { variable: string }
}

/** A longer list is useless, and a log line must be bounded. */
const maxShown = 50

/**
 * An error with one line for each problem, in the order of the file: `file:line:column: path: what is wrong`, or
 * `environment: VARIABLE: what is wrong`. Problems beyond 50 are counted.
 */
export function refusal(
	file: string,
	problems: readonly Problem[],
	code: 'config_invalid' | 'unavailable' = 'config_invalid',
): Fault {
	const shown = inOrder(problems)
		.slice(0, maxShown)
		// Names come from the file: they may be long, and must not forge a line.
		.map((problem) => ({ ...problem, path: excerpt(problem.path, 200).replace(/\p{Cc}/gu, '?') }))
	const lines = shown.map((problem) => lineOf(file, problem))
	if (problems.length > maxShown) lines.push(`and ${problems.length - maxShown} more`)
	const errors = shown.map(({ path, message, where }) => ({
		path: 'variable' in where ? where.variable : path,
		message,
		...(!('variable' in where) && where),
	}))
	return new Fault(code, lines.join('\n'), { errors })
}

/** `file:line:column: path: what is wrong`. */
function lineOf(file: string, { path, message, where }: Problem): string {
	return 'variable' in where
		? `environment: ${where.variable}: ${message}`
		: `${file}:${where.line}:${where.column}: ${path ? `${path}: ` : ''}${message}`
}

/** In the order of the file, those of the environment first. */
export function inOrder(problems: readonly Problem[]): Problem[] {
	const order = ({ where }: Problem): number => ('variable' in where ? 0 : where.line * 1e7 + where.column)
	return problems.toSorted((a, b) => order(a) - order(b))
}
