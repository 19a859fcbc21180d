/** Commander's command, whose errors say what may be written instead. */
import { Command } from 'commander'
import type { ErrorOptions } from 'commander'

export class Parser extends Command {
	override createCommand(name?: string): Parser {
		return new Parser(name)
	}

	override error(message: string, options?: ErrorOptions): never {
		const advice = message.includes('Did you mean') ? undefined : this.#adviceFor(options?.code)
		return super.error(advice === undefined ? message : `${message}\n${advice}`, options)
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

	/** As a person types it: `svc agents show`. */
	#path(): string {
		return this.parent instanceof Parser ? `${this.parent.#path()} ${this.name()}` : this.name()
	}

	#names(): string[] {
		return this.createHelp()
			.visibleCommands(this)
			.map((command) => command.name())
			.filter((name) => name !== 'help')
	}
}
