/** Extends commander's command: its errors also say what to write instead. */
import { Command } from 'commander'
import type { ErrorOptions, HelpContext } from 'commander'

export class Parser extends Command {
	/** Commander's method, which its types omit. Throws. */
	declare unknownCommand: () => never

	override createCommand(name?: string): Parser {
		return new Parser(name)
	}

	override error(message: string, options?: ErrorOptions): never {
		const advice = [
			message.includes('Did you mean') ? undefined : this.#adviceFor(options?.code),
			options?.code === 'commander.unknownOption' ? this.#separatorFor(message) : undefined,
		]
		return super.error([message, ...advice.filter((one) => one !== undefined)].join('\n'), options)
	}

	/** `svc typo --help` fails in the same way as `svc typo`. */
	override outputHelp(context?: HelpContext | ((text: string) => string)): void {
		const word = this.args[0] ?? '-'
		const isCommand = word.startsWith('-') || word === 'help' || this.#names().includes(word)
		const takesOthers = this.commands.length === 0 || this.registeredArguments.length > 0
		if (!isCommand && !takesOthers) this.unknownCommand()
		super.outputHelp(context as HelpContext)
	}

	#adviceFor(code: string | undefined): string | undefined {
		switch (code) {
			case 'commander.unknownCommand':
				return this.parent ? `There are: ${this.#names().join(', ')}` : `"${this.name()} --help" lists the commands.`
			case 'commander.unknownOption':
			case 'commander.missingMandatoryOptionValue':
				return `"${this.#path()} --help" lists the options.`
			case 'commander.missingArgument':
			case 'commander.excessArguments':
				return `Usage: ${this.#path()} ${this.usage()}`
			default:
				return undefined
		}
	}

	/** For an option that belongs to another program, whose command line is the last argument of this command. */
	#separatorFor(message: string): string | undefined {
		const [, option] = /^error: unknown option '([^']+)'/.exec(message) ?? []
		const [words] = /[[<][\w-]+\.\.\.[\]>]$/.exec(this.usage()) ?? []
		if (option === undefined || words === undefined) return undefined
		return `If it is part of ${words}, ${option} goes after --: ${this.#path()} ${this.usage().replace(words, `-- ${words}`)}`
	}

	/** As a person types it: `svc agents show`. */
	#path(): string {
		return this.parent instanceof Parser ? `${this.parent.#path()} ${this.name()}` : this.name()
	}

	#names(): string[] {
		return namesOf(this).filter((name) => name !== 'help')
	}
}

/** The subcommands that help shows. */
export function namesOf(command: Command): string[] {
	return command
		.createHelp()
		.visibleCommands(command)
		.map((one) => one.name())
}
