/**
 * What a command of `svc` is given. Each file of `commands/` exports one `Register`, which adds its command, with
 * subcommands and options, to commander's program; what the command does goes through `cli` only, so that all commands
 * print, ask, fail and stop the same way.
 */
import type { Command } from 'commander'
import type { EventEnvelope } from '../store/ports.ts'

export type Register = (program: Command, cli: Cli) => void

export interface Cli {
	readonly env: Readonly<NodeJS.ProcessEnv>
	/** Where the user stands: relative file names belong to it. */
	readonly cwd: string
	/** The home folder, absolute; `SVC_HOME` or `~/.svc`. */
	readonly home: string
	readonly api: Api
	readonly out: Output
	readonly ask: Prompts
	/** Aborts with the first Ctrl-C or SIGTERM. The second one ends the process. */
	readonly signal: AbortSignal
	/** Something that Ctrl-C ends by itself: it aborts the signal that `work` gets, and the command goes on. */
	interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
}

/**
 * The gateway's HTTP API, at `SVC_URL`, else where the home's `run/gateway.json` says, else http://127.0.0.1:3000, with the
 * token of `SVC_TOKEN` where it is set. Every call throws a `CliError` that says what to change: with the gateway's own
 * message, or how to start one where none answers.
 */
export interface Api {
	readonly url: string
	/** `path` begins with /; parts from outside are encoded by `path`, the tag of this module. Answers with the parsed body. */
	request<T>(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<T>
	/** Events from now on, or from behind a cursor; made again after a lost connection, without gap or repeat, until the signal aborts. */
	events(query: Record<string, string>, options?: EventOptions): AsyncIterable<StreamedEvent>
}

export interface RequestOptions {
	/** In place of the command's own: Ctrl-C does not cut the request off. */
	signal?: AbortSignal
	/** A status that is no success, and whose body is an answer all the same. */
	accept?: number
	/** The answer may take hours to begin; without this, 300 s at the most. */
	patient?: boolean
}

export interface EventOptions {
	after?: string
	signal?: AbortSignal
	/** Called once the stream is open: whatever happens from then on is heard. */
	opened?(): void
	/** Called when the connection is lost, and again for each attempt that fails. */
	lost?(): void
}

export interface StreamedEvent {
	cursor: string | undefined
	event: EventEnvelope
}

/**
 * Answers go to standard output, everything else to standard error. With `--json` an answer is one JSON document, and a
 * stream one document a line. Colours only on a terminal, and never with NO_COLOR. Text from outside is shown with its
 * control characters escaped.
 */
export interface Output {
	readonly json: boolean
	/** Whether only the answer is wanted. */
	readonly quiet: boolean
	/** One answer: `value` as JSON with `--json`, else the text that `show` makes of it. */
	answer<T>(value: T, show: (value: T, style: Style) => string): void
	/** A piece of a stream, without a line end of its own, for people only. */
	write(text: string): void
	/** One document of a stream, with `--json` only. */
	line(value: unknown): void
	/** For people, on standard error; nothing with `--quiet`. */
	note(text: string): void
	/** Something takes long: a spinner on a terminal, one line otherwise, nothing with `--json` or `--quiet`. */
	progress(text: string): Progress
	readonly style: Style
}

export interface Progress extends Disposable {
	update(text: string): void
	done(text?: string): void
}

export interface Style {
	bold(text: string): string
	dim(text: string): string
	good(text: string): string
	warn(text: string): string
	bad(text: string): string
	/** Rows under aligned headings; `empty` where there are no rows, which says what to do for the first one. Default `(none)`. */
	table(headings: string[], rows: (string | number | null | undefined)[][], empty?: string): string
	/** `name: value` lines, aligned. */
	fields(pairs: [name: string, value: unknown][]): string
	/** Text from outside, safe on a terminal: control and invisible characters escaped; line breaks stay where asked for. */
	plain(text: string, options?: { lines?: boolean }): string
}

/** Asks the user; each throws a `CliError` (usage) where nobody can answer, which says which option or input to give instead. */
export interface Prompts {
	/** A line of text. */
	text(question: string, options?: { initial?: string; signal?: AbortSignal }): Promise<string>
	choice(question: string, options: string[], more?: { signal?: AbortSignal }): Promise<string>
	confirm(question: string): Promise<boolean>
	/** From a hidden prompt on a terminal, else all of standard input without its last line end. Never from an argument. */
	secret(question: string): Promise<string>
	/** All of standard input, without a question. Throws a `CliError` (usage) for more than 2 MiB. */
	input(): Promise<Buffer>
	/** Lines of standard input as they come; on a terminal each behind a prompt, with history. */
	lines(prompt: string): Promise<Lines>
	/** Whether somebody can be asked. */
	readonly canAsk: boolean
}

/** What a person types line by line, or what is piped in. One reads at a time. */
export interface Lines {
	/** Undefined at the end. */
	next(): Promise<string | undefined>
	/**
	 * The next line while something else goes on: on a terminal without a prompt, where Ctrl-C stays a signal, and not while
	 * a question is asked. Undefined at the end, and once `until` aborts; what is typed after that is there for `next`.
	 */
	meanwhile(until: AbortSignal): Promise<string | undefined>
}

/** Exit codes of `svc`; those from 64 on are sysexits(3)'s. */
export const exitCodes = {
	ok: 0,
	/** The command did what it should, and the news is bad: a failed run, a finding of the doctor. */
	failed: 1,
	/** Wrong arguments, or a request that the gateway refuses as invalid. */
	usage: 2,
	/** No token, or one without the scope. */
	denied: 3,
	not_found: 4,
	/** It exists already, or its state forbids it. */
	conflict: 5,
	/** No gateway answers, or it cannot serve. */
	unavailable: 69,
	/** A bug, or an error of the gateway's own. */
	internal: 70,
	/** gateway.yaml holds an error. */
	config: 78,
	interrupted: 130,
} as const

export type ExitName = keyof typeof exitCodes

/** An expected failure of a command: its message is all that is shown. */
export class CliError extends Error {
	readonly exit: ExitName
	/** The gateway's stable code, where it comes from there. */
	readonly code: string | undefined
	constructor(exit: ExitName, message: string, options: ErrorOptions & { code?: string } = {}) {
		super(message, options)
		this.exit = exit
		this.code = options.code
	}
}

/** Builds a path of the API: every value is encoded as one segment. `` path`/v1/agents/${name}` `` */
export function path(parts: TemplateStringsArray, ...values: (string | number)[]): string {
	return parts.reduce((text, part, n) => text + encodeURIComponent(String(values[n - 1])) + part)
}
