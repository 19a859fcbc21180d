/** Builds commander's program from the commands of the host, built-in plugins and third-party plugins. Only the wanted command is loaded. */
import { CommanderError } from 'commander'
import type { Command as Program } from 'commander'
import { addCommand } from './build-command.ts'
import type { Candidates, Command, TopCommand } from './command.ts'
import { builtInFiles, CommandTable } from './command-table.ts'
import type { Cli } from './contract.ts'
import type { Sink } from './output.ts'
import { Parser } from './parser.ts'
import { thirdPartyFiles } from './third-party.ts'
import { version } from '../version.ts'

export { CommanderError }

export interface ProgramOptions {
	stdout: Sink
	stderr: Sink
	/** Creates the argument of commands, once the program's options can be read. */
	cli(options: CliOptions): Cli
	/** Loads all commands of the host and of built-in plugins, and none of third-party plugins. */
	all?: boolean
}

/** The options of every command; they can be read when it runs. */
export interface CliOptions {
	json(): boolean
	quiet(): boolean
}

export interface Built {
	program: Program
	/** What the tab key offers for an argument or option of this name. */
	candidatesOf(name: string): Candidates | undefined
	/** Problems of third-party commands, one line each. */
	problems: readonly string[]
}

/** `argv`: what the user typed, without node and file. */
export async function buildProgram(
	argv: readonly string[],
	{ stdout, stderr, cli, all = false }: ProgramOptions,
): Promise<Built> {
	const program = new Parser('svc')
		.description('Runs and uses a gateway for agents.')
		.option('--json', 'print JSON; streams print one document per line')
		.option('--quiet', 'print only the result')
		.optionsGroup('Everywhere:')
		.version(version, '--version', 'show the version')
		.helpOption('-h, --help', 'show help')
		.helpCommand('help [command]', 'show help')
		.exitOverride()
		.configureHelp({ showGlobalOptions: true, sortSubcommands: false })
		.configureOutput({
			writeOut: (text) => void stdout.write(text),
			writeErr: (text) => void stderr.write(text),
			// The caller reports it, in the same form as all errors.
			outputError: () => {},
			getOutHelpWidth: () => stdout.columns || 80,
			getErrHelpWidth: () => stderr.columns || 80,
		})
		.addHelpText(
			'after',
			'\n"svc <command> --help" shows examples. SVC_URL and SVC_TOKEN (or svc login) select the gateway, SVC_HOME the home.',
		)
	const given = cli({ json: () => program.opts().json === true, quiet: () => program.opts().quiet === true })
	const table = new CommandTable()
	for (const file of await builtInFiles()) table.add({ file })
	const wanted = wantedCommand(argv)
	if (!all && (wanted === undefined || !table.has(wanted)))
		for await (const file of thirdPartyFiles(given, wanted)) {
			table.add(file)
			if (wanted !== undefined && table.has(wanted)) break
		}
	for (const { name, title, plugin, command: listed } of table.entries()) {
		try {
			const command = await loaded(listed, all || name === wanted)
			addCommand(program, name, { ...command, description: command.description ?? listed.summary }, given)
			program.commands.at(-1)?.summary(listed.summary).helpGroup(title)
		} catch (error) {
			if (plugin === undefined) throw error
			table.report(plugin, error)
		}
	}
	return { program, candidatesOf: (name) => table.candidatesOf(name), problems: table.problems }
}

/** The command, empty if only its name is needed. */
async function loaded(listed: TopCommand, isNeeded: boolean): Promise<Command> {
	if (!('load' in listed)) return listed
	return isNeeded ? (await listed.load()).default : {}
}

/** The first word that is not an option; after `help` the second. The options before it have no values. */
function wantedCommand(argv: readonly string[]): string | undefined {
	const words = argv.filter((word) => !word.startsWith('-'))
	return words[0] === 'help' ? words[1] : words[0]
}
