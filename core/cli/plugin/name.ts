import { isBuiltIn } from '../../util/own-files.ts'
import { CliError } from '../contract.ts'

/** Throws a `CliError` if a new plugin cannot have this name. */
export function checkName(name: string): void {
	if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) || name.length > 64)
		throw new CliError(
			'usage',
			`"${name}" is not a valid name: use lower-case letters, digits and "-", beginning with a letter, 64 characters at most`,
		)
	if (isBuiltIn(name))
		throw new CliError('conflict', `the gateway has a built-in plugin "${name}"; choose another name`)
}
