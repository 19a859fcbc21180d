/** The help of every command of `svc`, for docs/command-line.md. */
import type { Command } from 'commander'
import type { Cli } from '../../core/cli/contract.ts'
import { buildProgram } from '../../core/cli/program.ts'

const WIDTH = 100

/** The program `svc` with every command loaded, and without output. */
export async function wholeProgram(): Promise<Command> {
	const silent = { write: () => true, isTTY: false, columns: WIDTH } as never
	return (await buildProgram([], { stdout: silent, stderr: silent, cli: () => ({}) as Cli, all: true })).program
}

export async function helpOfAll(): Promise<string> {
	const program = await wholeProgram()
	const parts = program.commands.map((command) => `### svc ${command.name()}\n\n${helpOf(command)}`)
	return parts.join('\n\n')
}

/** Without hidden commands and commander's `help`. */
export function subcommandsOf(command: Command): Command[] {
	return command
		.createHelp()
		.visibleCommands(command)
		.filter((one) => one.name() !== 'help')
}

function helpOf(command: Command): string {
	const own = [block(command)]
	for (const inner of subcommandsOf(command)) {
		if (inner.options.length === 0) continue // its line in the command's help is enough
		own.push(
			`<details><summary><code>svc ${command.name()} ${inner.name()}</code></summary>\n\n${block(inner)}\n\n</details>`,
		)
	}
	return own.join('\n\n')
}

/** The help of a command without the options that all commands have. */
function block(command: Command): string {
	let text = ''
	command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => WIDTH })
	command.outputHelp()
	const kept = text
		.split(/\n(?=\S[^\n]*:\n)/)
		.filter((part) => !/^(Everywhere|Global Options):\n/.test(part) || /\n\n\S/.test(part))
		.map((part) => (/^(Everywhere|Global Options):\n/.test(part) ? part.slice(part.search(/\n\n\S/) + 2) : part))
		.join('\n')
	return `\`\`\`text of=help\n${kept.replaceAll(/^ +help \[command\] .*\n/gm, '').trim()}\n\`\`\``
}
