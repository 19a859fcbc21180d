import type { Argument, Command } from 'commander'
import type { Cli } from './contract.ts'
import { within } from '../util/deadline.ts'
import { namesOf } from './parser.ts'
import { buildProgram } from './program.ts'

/** Nobody chooses from more. */
const LIMIT = 200
/** The longest wait after the tab key is pressed. */
const TIME_LIMIT_MS = 3_000

/**
 * What can replace the last word: subcommands, options after a -, choices, and the candidates of plugins for the argument or
 * option at that place.
 */
export async function candidates(cli: Cli, words: readonly string[]): Promise<string[]> {
	const before = words.slice(0, -1)
	const prefix = words.at(-1) ?? ''
	const discard = { write: () => true } as never
	const { program, candidatesOf } = await buildProgram(before, { stdout: discard, stderr: discard, cli: () => cli })
	/** Empty if the plugin takes too long or fails: the tab key shows no errors. */
	const fromPlugin = async (name: string): Promise<string[]> => {
		const work = (async () => await candidatesOf(name)?.(cli, prefix, AbortSignal.timeout(TIME_LIMIT_MS)))()
		return (await within(TIME_LIMIT_MS, name, work).catch(() => undefined)) ?? []
	}
	let command = program
	const given: string[] = []
	for (let n = 0; n < before.length; n++) {
		const word = before[n] ?? ''
		const option = optionOf(command, word)
		if (word.startsWith('-')) {
			const takesValue = option && (option.required || option.optional) && !word.includes('=')
			if (takesValue && n === before.length - 1)
				return matching(option.argChoices ?? (await fromPlugin(option.attributeName())), prefix)
			if (takesValue) n++
			continue
		}
		const inner = given.length === 0 ? command.commands.find((one) => one.name() === word) : undefined
		if (inner) command = inner
		else given.push(word)
	}
	if (prefix.startsWith('-')) return matching(optionsOf(command), prefix)
	if (command.commands.length > 0 && given.length === 0) return matching(namesOf(command), prefix)
	const wanted = argumentAt(command, given.length)
	return wanted ? matching(wanted.argChoices ?? (await fromPlugin(wanted.name())), prefix) : []
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

function argumentAt(command: Command, place: number): Argument | undefined {
	const last = command.registeredArguments.at(-1)
	return command.registeredArguments[place] ?? (last?.variadic ? last : undefined)
}

function matching(all: readonly string[], prefix: string): string[] {
	return all.filter((one) => one.startsWith(prefix)).slice(0, LIMIT)
}
