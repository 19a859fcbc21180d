/** What a command of `svc` gets, so that all commands print, ask, fail and stop in the same way. */
import type { EventEnvelope } from '../store/ports.ts'

export interface Cli {
	readonly env: Readonly<NodeJS.ProcessEnv>
	/** The user's working directory; relative file names are relative to it. */
	readonly cwd: string
	/** The home folder, absolute; `SVC_HOME` or `~/.svc`. */
	readonly home: string
	readonly api: Api
	readonly out: Output
	readonly ask: Prompts
	/** Aborts with the first Ctrl-C or SIGTERM. The second one ends the process. */
	readonly signal: AbortSignal
	/** Runs `work`, which Ctrl-C ends alone: it aborts the signal that `work` gets, and the command continues. */
	interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
	/** An expected failure, to be thrown: `message` is all that is shown, `exit` names the exit code. */
	error(exit: ExitName, message: string): Error
}

/**
 * The gateway's HTTP API. The address is `SVC_URL`, else that in the home's `run/gateway.json`, else, without `SVC_HOME`,
 * http://127.0.0.1:3000. The token is `SVC_TOKEN`, else the one that `svc login` stored for the address. Every call throws a
 * `CliError` that says what to change: with the gateway's message, or how to start a gateway if none responds.
 */
export interface Api {
	readonly url: string
	/**
	 * `path` begins with /; encode parts from outside with the tag `path` of this module. A body of bytes is sent unchanged, any
	 * other as JSON. Returns the parsed body of the response.
	 */
	request<T>(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<T>
	/** Events from now on, or after a cursor, until the signal aborts; reconnects without a gap or a repeat. */
	events(query: Record<string, string>, options?: EventOptions): AsyncIterable<StreamedEvent>
}

export interface RequestOptions {
	/** Replaces the command's signal: Ctrl-C does not abort the request. */
	signal?: AbortSignal
	/** A status other than 2xx whose body is returned as well. */
	accept?: number
	/** The response may take hours to begin; without this, 300 s at most. */
	patient?: boolean
	/** The gateway responds at once: gives up on a silent server after about 10 s. */
	brief?: boolean
	/** The response is a file: returns its bytes. */
	bytes?: boolean
}

export interface EventOptions {
	after?: string
	signal?: AbortSignal
	/** Called once the stream is open: every event from then on is received. */
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
	/** A piece of a stream, printed without a line end; nothing with `--json`. */
	write(text: string): void
	/** One document of a stream, with `--json` only. */
	line(value: unknown): void
	/** For people, on standard error; nothing with `--quiet`. */
	note(text: string): void
	/**
	 * Shows that something takes long: a spinner on a terminal; otherwise one line, unless `terminalOnly`; nothing with `--json`
	 * or `--quiet`. Lines that are written meanwhile appear above the spinner. A new spinner ends the previous one.
	 */
	progress(text: string, options?: { terminalOnly?: boolean }): Progress
	/** Columns for rendered Markdown; null if answers stay plain text: in a pipe, with NO_COLOR, on a dumb terminal. */
	readonly richColumns: number | null
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
	/** Rows under aligned headings. `empty` is the text without rows, such as how to create the first one. Default `(none)`. */
	table(headings: string[], rows: (string | number | null | undefined)[][], empty?: string): string
	/** `name: value` lines, aligned. */
	fields(pairs: [name: string, value: unknown][]): string
	/** Text from outside, safe on a terminal: control and invisible characters escaped; line breaks stay where asked for. */
	plain(text: string, options?: { lines?: boolean }): string
}

/** Asks the user. Without an interactive terminal, each throws a `CliError` (usage) that says how to give the answer instead. */
export interface Prompts {
	/** A line of text. */
	text(question: string, options?: TextQuestion): Promise<string>
	/** One of the names, or another text. Typing narrows the list. */
	suggest(question: string, names: string[], options?: Pick<TextQuestion, 'placeholder' | 'validate'>): Promise<string>
	choice(question: string, choices: string[], options?: { signal?: AbortSignal }): Promise<string>
	confirm(question: string): Promise<boolean>
	/** From a hidden prompt on a terminal, else all of standard input without its last line end. Never from an argument. */
	secret(question: string, options?: { validate?: Validate }): Promise<string>
	/** All of standard input, without a question. Throws a `CliError` (usage) for more than 2 MiB. */
	input(): Promise<Buffer>
	/**
	 * Lines of standard input as they arrive; on a terminal after a prompt, with `history`. There one prompt accepts several lines:
	 * pasted ones, and those that end with \\ or Alt-Enter.
	 */
	lines(prompt: string, history?: History): Promise<Lines>
	/** Whether a user can be asked. */
	readonly canAsk: boolean
}

export interface TextQuestion {
	/** Text that is in the field at first, as if it had been typed. */
	initial?: string
	/** The answer if nothing is typed; shown dimmed. */
	fallback?: string
	/** Shown dimmed until something is typed. */
	placeholder?: string
	validate?: Validate
	signal?: AbortSignal
}

/** The problem of an answer, for which the user is then asked again; undefined if it is valid. Only on a terminal. */
export type Validate = (answer: string) => string | undefined

/** What was typed earlier, newest first. */
export interface History {
	readonly entries: readonly string[]
	add(text: string): void
}

/** What a person types line by line, or what is piped in. Only one call at a time. */
export interface Lines {
	/** Undefined at the end. */
	next(): Promise<string | undefined>
	/**
	 * The next line while other work continues: on a terminal without a prompt, where Ctrl-C stays a signal, and not while a
	 * question is asked. Undefined at the end, and once `until` aborts; `next` returns what is typed after that.
	 */
	meanwhile(until: AbortSignal): Promise<string | undefined>
}

/** Exit codes of `svc`; those from 64 on are sysexits(3)'s. */
export const exitCodes = {
	ok: 0,
	/** The command worked, and its result is bad: a failed run, a finding of the doctor. */
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

/** The exit code for the status of a response. */
export function exitOf(status: number): ExitName {
	if (status === 401 || status === 403) return 'denied'
	if (status === 404) return 'not_found'
	if (status === 409) return 'conflict'
	if (status === 429 || status === 503 || status === 507) return 'unavailable'
	if (status === 502 || status === 504) return 'failed'
	return status < 500 ? 'usage' : 'internal'
}

/** An expected failure of a command: its message is all that is shown. */
export class CliError extends Error {
	readonly exit: ExitName
	/** The error code of the gateway; undefined if the error is not from a gateway. */
	readonly code: string | undefined
	/** The wrong fields that the gateway reports. */
	readonly errors: readonly { path: string; message: string }[]
	constructor(
		exit: ExitName,
		message: string,
		options: ErrorOptions & { code?: string; errors?: CliError['errors'] } = {},
	) {
		super(message, options)
		this.exit = exit
		this.code = options.code
		this.errors = options.errors ?? []
	}
}

/** Builds a path of the API: every value is encoded as one segment. `` path`/v1/agents/${name}` `` */
export function path(parts: TemplateStringsArray, ...values: (string | number)[]): string {
	return parts.reduce((text, part, n) => text + encodeURIComponent(String(values[n - 1])) + part)
}
