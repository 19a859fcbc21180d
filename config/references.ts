import type { Environment } from './home.ts'
import { ConfigError } from './problems.ts'

/** Text that the references of one file may add up to: a few kilobytes of YAML could otherwise ask for gigabytes. */
const maxExpanded = 4 * 1024 * 1024

/**
 * Makes the function that replaces `${NAME}` and `${NAME:-default}` in a text; `$${` stands for a plain `${`. As in a
 * shell, the default also takes the place of an empty variable. What a variable holds is not looked at again.
 * The function throws `config_invalid` for a variable that is not set and for a `${` that is no reference.
 */
export function referenceReader(env: Environment): (text: string) => string {
	let expanded = 0
	return (text) => {
		const result = text.replace(
			/\$\$\{|\$\{([^}]*)(\}?)/g,
			(match, inner: string | undefined, end: string | undefined) =>
				inner === undefined ? '${' : lookUp(inner, end === '}', env),
		)
		if (result !== text) expanded += result.length
		if (expanded > maxExpanded)
			throw new ConfigError('config_invalid', 'the values from the environment add up to more than 4 MiB')
		return result
	}
}

function lookUp(inner: string, closed: boolean, env: Environment): string {
	const [, name, fallback] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inner) ?? []
	if (!name || !closed) {
		throw new ConfigError(
			'config_invalid',
			'has a "${" that is not a reference; write ${NAME} or ${NAME:-default}, or $${ for the characters',
		)
	}
	const value = Object.hasOwn(env, name) ? env[name] : undefined
	if (fallback !== undefined) return value || fallback
	if (value !== undefined) return value
	throw new ConfigError(
		'config_invalid',
		`the environment variable ${name} is not set; set it, or write \${${name}:-default}`,
	)
}
