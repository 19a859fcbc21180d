/** Converts the declaration of a command to commander's. */
import { InvalidArgumentError, Option as CommanderOption } from 'commander'
import type { Command as CommanderCommand } from 'commander'
import type { Command, Option } from './command.ts'
import type { Cli } from './contract.ts'
import { allowSecretArguments, refuseSecretArguments } from './secret-input.ts'

/** Adds a command with its subcommands. Throws, and adds nothing, if the declaration is invalid. */
export function addCommand(parent: CommanderCommand, name: string, declared: Command, cli: Cli): void {
	const { description = '', arguments: parameters, usage, options = {}, examples, commands = {} } = declared
	const { hidden = false, takesSecret = false } = declared
	const command = parent.createCommand(name).copyInheritedSettings(parent).description(description)
	if (parameters !== undefined) command.arguments(parameters)
	if (usage !== undefined) command.usage(usage)
	for (const [flags, about] of Object.entries(options)) {
		const option = typeof about === 'string' ? { about } : about
		command.addOption(optionOf(flags, option))
		if (option.formerly !== undefined) acceptFormer(command, flags, { ...option, formerly: option.formerly }, cli)
	}
	const names = new Set(command.options.map((option) => option.attributeName()))
	const twice = command.registeredArguments.find((one) => names.has(camelCase(one.name())))
	if (twice) throw new Error(`its command "${name}" has an argument and an option with the same name "${twice.name()}"`)
	if (examples !== undefined) command.addHelpText('after', examples)
	if (hidden) command.allowUnknownOption()
	if (takesSecret) allowSecretArguments(command)
	if (declared.run)
		command.action(async () => {
			if (takesSecret) refuseSecretArguments(command)
			const values = command.registeredArguments.map((one, n) => [camelCase(one.name()), command.processedArgs[n]])
			const given: object = { ...Object.fromEntries(values), ...command.opts<object>() }
			await declared.run?.(cli, given as never)
		})
	for (const [word, inner] of Object.entries(commands)) addCommand(command, word, inner, cli)
	parent.addCommand(command, { hidden })
}

/** Also accepts an option's former flag, whose value becomes that of the present option. */
function acceptFormer(command: CommanderCommand, flags: string, option: Option & { formerly: string }, cli: Cli): void {
	const [present = '', ...value] = flags.split(/[ ,]+/).filter((part) => !/^-[^-]/.test(part))
	const { default: _, ...rest } = option
	const former = optionOf([option.formerly, ...value].join(' '), { ...rest, required: false }).hideHelp()
	command.addOption(former)
	const name = camelCase(present.replace(/^--/, ''))
	// Runs after commander's own listener, which checks the value, and before commander reports missing required options.
	command.on(`option:${former.name()}`, () => {
		command.setOptionValueWithSource(name, command.getOptionValue(former.attributeName()), 'cli')
		cli.out.note(cli.out.style.warn(`${option.formerly} is now named ${present}; use ${present}`))
	})
}

function optionOf(
	flags: string,
	{ about, choices, max, default: fallback, required = false }: Option,
): CommanderOption {
	const option = new CommanderOption(flags, about).makeOptionMandatory(required)
	if (choices) option.choices(choices)
	if (max !== undefined) option.argParser((given: string) => countOf(given, max))
	return fallback === undefined ? option : option.default(fallback)
}

function countOf(given: string, max: number): number {
	const count = /^\d{1,15}$/.test(given) ? Number(given) : NaN
	if (count >= 1 && count <= max) return count
	throw new InvalidArgumentError(`It must be a whole number from 1 to ${max}.`)
}

function camelCase(name: string): string {
	return name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}
