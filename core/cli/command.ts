/**
 * The contract for commands of `svc`. A plugin's folder may hold a `cli.ts` (third-party plugins: also `cli.js` or
 * `cli.mjs`) whose default export is a `CommandFile`. It is data: a plugin imports types from here, never code. A
 * third-party plugin that gateway.yaml switches on is treated like a built-in one, with two limits: it cannot replace a
 * command that exists already, and its code does not run where other users can write to its files.
 * docs/writing-plugins.md has an example.
 */
import type { Cli, Style } from './contract.ts'

export interface CommandFile {
	/** Commands of the first level by name: lower-case letters, digits and hyphens, beginning with a letter. */
	commands: Record<string, TopCommand>
	/**
	 * What the tab key offers, by the name of an argument or an option: `agent` applies to `<agent>` and `--agent <name>` of every
	 * command, also of other plugins. If several plugins declare a name, the first one counts, built-in ones first.
	 */
	candidates?: Record<string, Candidates>
	/**
	 * The command that does what a route does, for hints in errors: `'PATCH /v1/agents/{name}': 'svc agents update {name}'`.
	 * A parameter without a value becomes a word in capitals. Of built-in plugins only.
	 */
	hints?: Record<string, string>
	/** A part of `svc status`; lower numbers first. Of built-in plugins only. */
	status?: { order: number; load(): Promise<{ default: StatusPart }> }
}

export interface StatusPart {
	/** Fields for the answer of `svc status --json`. Must not fail if the plugin is switched off. */
	read(cli: Cli): Promise<object>
	/** The lines for people, of the whole answer. */
	show(answer: never, style: Style): string[]
}

/** A command of the first level. `load` keeps `svc --help` fast: the code of the command is imported when it is called. */
export type TopCommand = Listed & (Command | { load(): Promise<{ default: Command }> })

export interface Listed {
	/** One line of `svc --help`. */
	summary: string
	/** The heading of `svc --help` that it appears under; default `plugins`. */
	group?: Group
	/** Its position under that heading: lower numbers first, then by name. Default: after all that have one. */
	order?: number
}

export type Group = 'gateway' | 'work' | 'abilities' | 'access' | 'shell' | 'plugins'

/** A command that runs, a group of subcommands, or both. */
export interface Command {
	/** The text of its own help; default: the summary. */
	description?: string
	/** As help shows them: `<agent> <prompt...>`; `[name]` is optional. `run` gets them by name, in camelCase. */
	arguments?: string
	/** Replaces the usage line of its help. */
	usage?: string
	/**
	 * By their flags: `--limit <n>`, `-y, --yes`, `--tag <tag...>`. A string is the text in help. `run` gets them by their long
	 * name, in camelCase.
	 */
	options?: Record<string, string | Option>
	/** Text at the end of its help. */
	examples?: string
	/** It asks for a secret (`ask.secret`): a value in its arguments is refused with the reason. */
	takesSecret?: boolean
	/** Absent from help and completion; unknown options are arguments. */
	hidden?: boolean
	/** Subcommands by name. Without a subcommand, `list` runs if there is one. */
	commands?: Record<string, Command>
	/** `given`: arguments and options in one object. Throw `cli.error(…)` for an expected failure. */
	run?(cli: Cli, given: never): void | Promise<void>
}

export interface Option {
	about: string
	/** The only values that it accepts; also its completion. */
	choices?: readonly string[]
	/** It accepts a whole number from 1 to `max`, and `run` gets a number. */
	max?: number
	default?: string | number
	required?: boolean
	/** The long flag that it had in an earlier version, `--max`: accepted with a warning, absent from help. */
	formerly?: `--${string}`
}

/** `prefix`: what is typed already. Candidates that do not begin with it are omitted. `signal` aborts after 3 s. */
export type Candidates = (cli: Cli, prefix: string, signal: AbortSignal) => Promise<string[]> | string[]
