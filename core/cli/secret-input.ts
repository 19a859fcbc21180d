/** Secrets come from a hidden prompt or from standard input, never from the arguments of a program. */
import { Option } from 'commander'
import type { Command } from 'commander'
import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'

const WHY =
	'Never pass a secret as an argument: others on this machine can read the arguments of a program, and the shell keeps them in its history.'

/** For a command that asks for a secret: lets arguments that may be one through the parser, so that the error explains the reason. */
export function allowSecretArguments(command: Command): void {
	command.allowExcessArguments(true)
	for (const name of names) command.addOption(new Option(`--${name} [text]`).hideHelp())
}

const names = ['value', 'token', 'password'] as const

/** Throws a usage error for a secret among the arguments. */
export function refuseSecretArguments(command: Command): void {
	const options: Record<string, unknown> = command.opts()
	if (command.args.length > command.registeredArguments.length || names.some((name) => options[name] !== undefined))
		throw new CliError('usage', `${WHY} Leave it out to be asked for it, or pipe it in: ${example(command)}`)
}

/** The secret, from the hidden prompt or standard input. Throws a usage error for an empty one. */
export async function secretInput(cli: Cli, question: string): Promise<string> {
	const secret = await cli.ask.secret(question)
	if (secret === '') throw new CliError('usage', `${question} is empty; nothing was changed`)
	return secret
}

/** Others can see the values of `--env` and `--header`. If the name indicates a secret, the value must be a handle. */
export function refuseSecret(option: string, name: string, value: string): void {
	if (!sensitive.test(name) || value === '' || value.includes('{{secret:')) return
	throw new CliError(
		'usage',
		`${option} ${name} looks like a secret. ${WHY} Keep it in the vault (svc vault set NAME), grant it (svc grants add AGENT NAME), and write '{{secret:NAME}}' in its place.`,
	)
}

const sensitive = /authorization|(^|[-_])auth($|[-_])|cookie|token|secret|passw|credential|api[-_]?key|(^|[-_])key$/i

function example(command: Command): string {
	const path: string[] = []
	for (let at: Command | null = command; at; at = at.parent) path.unshift(at.name())
	return `${[...path, ...command.args.slice(0, command.registeredArguments.length)].join(' ')} < file`
}
