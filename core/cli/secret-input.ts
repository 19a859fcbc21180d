/** Secrets come from a hidden prompt or from standard input: the arguments of a program are no place for them. */
import { Option } from 'commander'
import type { Command } from 'commander'
import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'

const WHY =
	'A secret is never given as an argument: others on this machine can read the arguments of a program, and the shell keeps them in its history.'

/** For a command that takes a secret: what looks as if the secret stood in its arguments gets an answer that says why not. */
export function takesSecret(command: Command): Command {
	command.allowExcessArguments(true)
	for (const name of names) command.addOption(new Option(`--${name} [text]`).hideHelp())
	return command
}

const names = ['value', 'token', 'password'] as const

/** The secret, from the hidden prompt or standard input. Throws a `CliError` where it stands in the arguments. */
export async function secretInput(cli: Cli, command: Command, question: string): Promise<string> {
	const options: Record<string, unknown> = command.opts()
	if (command.args.length > command.registeredArguments.length || names.some((name) => options[name] !== undefined))
		throw new CliError('usage', `${WHY} Leave it out to be asked for it, or pipe it in: ${example(command)}`)
	const secret = await cli.ask.secret(question)
	if (secret === '') throw new CliError('usage', 'an empty secret is none; nothing was changed')
	return secret
}

/** A value of `--env` or `--header` stays in sight of others: what goes by the name of a secret must be a handle. */
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
