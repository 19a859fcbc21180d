import { Fault } from '../core/errors.ts'
import type { Environment } from './home.ts'

/** Limit of the text from the references of one file: otherwise a few kilobytes of YAML could expand to gigabytes. */
const maxExpanded = 4 * 1024 * 1024

/**
 * Returns a function that replaces `${NAME}` and `${NAME:-default}` in a text; `$${` is an escaped `${`. As in a shell, the
 * default also replaces an empty variable. References in a variable's value are not replaced. The function throws
 * `config_invalid` for a variable that is not set and for an invalid reference.
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
			throw new Fault('config_invalid', 'the values from the environment add up to more than 4 MiB')
		return result
	}
}

function lookUp(inner: string, closed: boolean, env: Environment): string {
	const [, name, fallback] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inner) ?? []
	if (!name || !closed) {
		throw new Fault(
			'config_invalid',
			'has a "${" that is not a reference; write ${NAME} or ${NAME:-default}, or $${ for the characters',
		)
	}
	const value = Object.hasOwn(env, name) ? env[name] : undefined
	if (fallback !== undefined) return value || fallback
	if (value !== undefined) return value
	throw new Fault(
		'config_invalid',
		`the environment variable ${name} is not set; set it, or write \${${name}:-default}`,
	)
}
