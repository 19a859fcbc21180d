/** All commands with their plugins, and the problems of commands that cannot be used. */
import { messageOf } from '../errors.ts'
import { importOwn } from '../util/own-code.ts'
import { ownParts } from '../util/own-files.ts'
import type { Candidates, CommandFile, Group, TopCommand } from './command.ts'

/** A `CommandFile`, or why it cannot be used. `plugin`: the third-party plugin; undefined for what comes with the gateway. */
export type CommandSource = { plugin?: string } & ({ file: CommandFile } | { problem: unknown })

/** Headings of help, in its order. */
const groups: Record<Group, string> = {
	gateway: 'Gateway:',
	work: 'Agents at work:',
	abilities: 'What agents can do:',
	access: 'Access:',
	shell: 'Shell:',
	plugins: 'Plugins:',
}

interface CommandEntry {
	name: string
	/** Undefined for what comes with the gateway. */
	plugin: string | undefined
	command: TopCommand
}

export class CommandTable {
	readonly #entries = new Map<string, CommandEntry>()
	readonly #candidates = new Map<string, Candidates>()
	readonly #problems: string[] = []

	/** Adds the commands of a file; one that is invalid or exists already becomes a problem. */
	add(found: CommandSource): void {
		const { plugin } = found
		if ('problem' in found) return this.report(plugin ?? 'svc', found.problem)
		const { commands, candidates } = found.file
		for (const [name, command] of Object.entries(commands)) {
			const problem = this.#problemWith(name, command)
			if (problem === undefined) this.#entries.set(name, { name, plugin, command })
			else this.report(plugin ?? 'svc', problem)
		}
		for (const [name, one] of Object.entries(candidates ?? {}))
			if (!this.#candidates.has(name)) this.#candidates.set(name, one)
	}

	has(name: string): boolean {
		return this.#entries.has(name)
	}

	/** In the order in which help shows them. */
	entries(): (CommandEntry & { title: string })[] {
		const position = ({ command }: CommandEntry): number => command.order ?? Infinity
		// The difference of two commands without a position is NaN.
		const all = [...this.#entries.values()].toSorted((a, b) => position(a) - position(b) || (a.name < b.name ? -1 : 1))
		return Object.entries(groups).flatMap(([name, title]) =>
			all.filter(({ command: { group = 'plugins' } }) => group === name).map((entry) => ({ ...entry, title })),
		)
	}

	candidatesOf(name: string): Candidates | undefined {
		return this.#candidates.get(name)
	}

	/** One line each, such as `plugin "weather": …`. */
	get problems(): readonly string[] {
		return this.#problems
	}

	report(plugin: string, problem: unknown): void {
		this.#problems.push(`plugin "${plugin}": ${typeof problem === 'string' ? problem : messageOf(problem)}`)
	}

	#problemWith(name: string, command: TopCommand): string | undefined {
		const other = this.#entries.get(name)
		if (!/^[a-z][a-z0-9-]{0,31}$/.test(name))
			return `"${name}" cannot name a command; use lower-case letters, digits and hyphens, 32 characters at most`
		if (name === 'help' || (other && other.plugin === undefined))
			return `its command "${name}" is ignored, because svc has one of that name; rename it`
		if (other) return `its command "${name}" is ignored, because plugin "${other.plugin}" has one of that name`
		if (typeof command?.summary !== 'string') return `its command "${name}" has no summary`
		const { group = 'plugins' } = command
		return group in groups
			? undefined
			: `its command "${name}" has an unknown group; there are: ${Object.keys(groups).join(', ')}`
	}
}

/** The host's own commands and those of built-in plugins, which are found by their file name: the host names no plugin. */
export async function builtInFiles(): Promise<CommandFile[]> {
	const [own, files] = await Promise.all([
		importOwn(new URL('./commands.ts', import.meta.url)) as Promise<{ default: CommandFile }>,
		ownParts<CommandFile>('cli.ts'),
	])
	return [own.default, ...files.values()]
}
