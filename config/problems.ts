import { Fault } from '../core/errors.ts'

/** A place in the file, counted from 1 as editors do. */
export interface Position {
	line: number
	column: number
}

/** One thing that is wrong. `where` is a place in the file, or the environment variable that the value came from. */
export interface Problem {
	path: string
	message: string
	where: Position | { variable: string }
}

/** More of them help nobody, and a log line has to end. */
const maxShown = 50

/**
 * `config_invalid` with one line for each problem, in the order of the file: `file:line:column: path: what is wrong`,
 * or `environment: VARIABLE: what is wrong`. Beyond 50 the rest is counted.
 */
export function refusal(file: string, problems: readonly Problem[]): Fault {
	const shown = problems
		.toSorted((a, b) => order(a) - order(b))
		.slice(0, maxShown)
		.map((problem) => ({ ...problem, path: printable(problem.path) }))
	const lines = shown.map(({ path, message, where }) =>
		'variable' in where
			? `environment: ${where.variable}: ${message}`
			: `${file}:${where.line}:${where.column}: ${path ? `${path}: ` : ''}${message}`,
	)
	if (problems.length > maxShown) lines.push(`and ${problems.length - maxShown} more`)
	const errors = shown.map(({ path, message, where }) => ({
		path: 'variable' in where ? where.variable : path,
		message,
	}))
	return new Fault('config_invalid', lines.join('\n'), { errors })
}

/** Names come from the file as they are: they may be long, and must not forge a line. */
function printable(path: string): string {
	const text = path.length > 200 ? `${path.slice(0, 200)}…` : path
	return text.replace(/\p{Cc}/gu, '?')
}

function order({ where }: Problem): number {
	return 'variable' in where ? 0 : where.line * 1e7 + where.column
}
