import type { Argument, Command } from 'commander'
import type { Cli } from './contract.ts'
import { buildProgram } from './program.ts'

/** More than anybody picks from. */
const LIMIT = 200
/** Who presses the key does not wait longer. */
const PATIENCE_MS = 1_000

/**
 * What may stand in place of the last word: subcommands, options behind a -, choices, and names of agents where the
 * command takes one. Asks the gateway for these only.
 */
export async function candidates(cli: Cli, words: readonly string[]): Promise<string[]> {
	const before = words.slice(0, -1)
	const prefix = words.at(-1) ?? ''
	const nowhere = { write: () => true } as never
	let command = await buildProgram(before, { stdout: nowhere, stderr: nowhere, cli: () => cli })
	const given: string[] = []
	for (let n = 0; n < before.length; n++) {
		const word = before[n] ?? ''
		const option = optionOf(command, word)
		if (word.startsWith('-')) {
			const takesValue = option && (option.required || option.optional) && !word.includes('=')
			if (takesValue && n === before.length - 1) return starting(option.argChoices ?? [], prefix)
			if (takesValue) n++
			continue
		}
		const inner = given.length === 0 ? command.commands.find((one) => one.name() === word) : undefined
		if (inner) command = inner
		else given.push(word)
	}
	if (prefix.startsWith('-')) return starting(optionsOf(command), prefix)
	if (command.commands.length > 0 && given.length === 0)
		return starting(
			command
				.createHelp()
				.visibleCommands(command)
				.map((one) => one.name()),
			prefix,
		)
	return starting(await choicesOf(cli, command, given.length), prefix)
}

function optionsOf(command: Command): string[] {
	const help = command.createHelp()
	return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)].flatMap((one) => one.long ?? [])
}

function optionOf(command: Command | null, word: string): Command['options'][number] | undefined {
	const flag = word.split('=')[0]
	for (let at = command; at; at = at.parent) {
		const found = at.options.find((one) => one.long === flag || one.short === flag)
		if (found) return found
	}
	return undefined
}

async function choicesOf({ api }: Cli, command: Command, place: number): Promise<string[]> {
	const last = command.registeredArguments.at(-1)
	const wanted: Argument | undefined = command.registeredArguments[place] ?? (last?.variadic ? last : undefined)
	if (wanted?.argChoices) return wanted.argChoices
	if (wanted?.name() !== 'agent') return []
	const until = { signal: AbortSignal.timeout(PATIENCE_MS) }
	return (await api.request<{ name: string }[]>('GET', '/v1/agents', undefined, until)).map((one) => one.name)
}

function starting(all: readonly string[], prefix: string): string[] {
	return all.filter((one) => one.startsWith(prefix)).slice(0, LIMIT)
}
