/** `svc` as a process, and as a function for tests. */
import type { Command } from 'commander'
import { homeFolder } from '../../config/home.ts'
import { isFault, messageOf } from '../errors.ts'
import { openApi } from './api.ts'
import type { OpenApi } from './api.ts'
import { CliError, exitCodes, exitOf } from './contract.ts'
import type { Api, Cli, ExitName } from './contract.ts'
import type { LineSource } from './lines.ts'
import { openOutput } from './output.ts'
import type { Sink } from './output.ts'
import { safe, safeJson } from './plain.ts'
import { buildProgram, CommanderError } from './program.ts'
import type { CliOptions } from './program.ts'
import { openPrompts } from './prompts.ts'

export interface Io {
	env: Readonly<NodeJS.ProcessEnv>
	cwd: string
	stdin: LineSource
	stdout: Sink
	stderr: Sink
	/** Aborts with Ctrl-C, unless work of the command captures it. */
	signal: AbortSignal
	/** Until the result is disposed of, Ctrl-C aborts only `interrupt`. */
	capture?(interrupt: AbortController): Disposable
}

/** One Ctrl-C arrives twice: from the terminal and from the parent process. A second key press arrives later. */
const SAME_SIGNAL_MS = 300

/** Runs one command; returns its exit code. `argv` is what the user wrote after `svc`. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
	const { env, stdout, stderr, signal } = io
	let api: OpenApi | undefined
	try {
		const home = homeFolder(env, io.cwd)
		const opened = (api = openApi({ env, home, signal }))
		const words = withHelp(argv)
		const given = (options: CliOptions): Cli => openCli(io, home, opened, options)
		const { program, problems } = await buildProgram(words, { stdout, stderr, cli: given })
		for (const problem of problems) stderr.write(`svc: ${safe(problem)}\n`)
		await program.parseAsync(withList(words, program), { from: 'user' })
		return exitCodes.ok
	} catch (error) {
		const judged = judge(error, env)
		// The cause of an unexpected error may be a server that is not a gateway.
		const { exit, message, code = exit } = (judged.exit === 'internal' && (await api?.serverProblem())) || judged
		const json = argv.slice(0, argv.includes('--') ? argv.indexOf('--') : undefined).includes('--json')
		if (message !== '') stderr.write(`${json ? safeJson({ error: { code, message } }) : `svc: ${safe(message)}`}\n`)
		return exitCodes[exit]
	}
}

function openCli(io: Io, home: string, api: Api, options: CliOptions): Cli {
	const { env, cwd, stdin, stdout, stderr, signal } = io
	return {
		env,
		cwd,
		home,
		api,
		out: openOutput({ stdout, stderr, env, ...options }),
		ask: openPrompts({ stdin, stderr, signal }),
		signal,
		async interruptible(work) {
			const interrupt = new AbortController()
			using _ = io.capture?.(interrupt)
			return await work(AbortSignal.any([signal, interrupt.signal]))
		},
		error: (exit, message) => new CliError(exit, message),
	}
}

/** `svc` is `svc --help`, and `svc help agents show` is `svc agents show --help`. */
function withHelp(argv: readonly string[]): readonly string[] {
	const [first = 'help', ...words] = argv
	return first === 'help' ? [...words, '--help'] : argv
}

/** `svc agents` is `svc agents list`: the list is the most frequent use of a command that has one. */
function withList(words: readonly string[], program: Command): readonly string[] {
	const [name, ...more] = words.filter((word) => !word.startsWith('-'))
	const asksHelp = words.some((word) => word === '--help' || word === '-h')
	const noun = program.commands.find((command) => command.name() === name)
	const list = noun?.commands.find((command) => command.name() === 'list')
	const needsMore = list?.registeredArguments.some((argument) => argument.required)
	return list && !needsMore && more.length === 0 && !asksHelp ? [...words, 'list'] : words
}

/** The exit code and message of an error; nothing is shown if the message is empty. */
function judge(error: unknown, env: Io['env']): { exit: ExitName; message: string; code?: string | undefined } {
	if (error instanceof CliError) return error
	if (error instanceof CommanderError) {
		const helped = error.code.startsWith('commander.help') || error.code === 'commander.version'
		const message = helped ? '' : error.message.replace(/^error: /, '')
		return { exit: error.exitCode === 0 ? 'ok' : 'usage', message }
	}
	if (isFault(error)) {
		const exit = error.code === 'config_invalid' ? 'config' : exitOf(error.status)
		return { exit, message: error.message, code: error.code }
	}
	if (error instanceof Error && error.name === 'AbortError') return { exit: 'interrupted', message: '' }
	const trace = error instanceof Error && env.SVC_DEBUG ? error.stack : undefined
	return { exit: 'internal', message: trace ?? `${messageOf(error)} (this is a bug; SVC_DEBUG=1 shows where)` }
}

/** The process: 1 closed output · 2 signals · 3 the command · 4 its exit code. */
export async function start(): Promise<void> {
	// `svc audit | head`: the reader has enough.
	process.stdout.on('error', (error: NodeJS.ErrnoException) =>
		process.exit(error.code === 'EPIPE' ? 0 : exitCodes.internal),
	)
	process.stderr.on('error', () => {})
	const all = new AbortController()
	const captured: AbortController[] = []
	let latest = -Infinity
	const end = (which: AbortController): void => {
		if (performance.now() - latest < SAME_SIGNAL_MS) return
		latest = performance.now()
		if (which.signal.aborted) process.exit(exitCodes.interrupted)
		which.abort()
	}
	process.on('SIGINT', () => end(captured.at(-1) ?? all))
	process.on('SIGTERM', () => end(all))
	const capture = (interrupt: AbortController): Disposable => {
		captured.push(interrupt)
		return { [Symbol.dispose]: () => void captured.splice(captured.indexOf(interrupt), 1) }
	}
	const { env, stdin, stdout, stderr } = process
	const io: Io = { env, cwd: process.cwd(), stdin, stdout, stderr, signal: all.signal, capture }
	const code = await main(process.argv.slice(2), io)
	// Writes to a pipe are asynchronous on some systems: exit once the output is flushed.
	stdout.write('', () => process.exit(code))
}

if (import.meta.main) await start()
