/** A conversation at the terminal: prompts, and commands that are accepted at any time. */
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli, History } from '../../../core/cli/contract.ts'
import { historyFile, openHistory } from './chat-history.ts'
import { startRun } from './follow-run.ts'
import type { CommandOutcome } from './run-question.ts'

const chatCommands = `  /new    begin a new session; an unfinished answer is stopped (not with --conversation)
  /stop   stop every run of the agent
  /quit   leave, as /exit, Ctrl-C and Ctrl-D do; an unfinished answer continues without you
  /help   list these commands
To begin a prompt with /, put a space before it. To begin a new line, end the line with \\ or press Alt-Enter; pasted lines are
one prompt.`

export default {
	description: 'Talk with an agent: each line is a prompt, in the current session or in a named conversation',
	arguments: '<agent>',
	options: {
		'--conversation <name>': 'name of the conversation; the first prompt creates it; default: the current session',
		'--ids': 'show the ids of runs',
		'--no-history': 'neither read nor write the history of prompts',
	},
	examples: `
At the prompt, and while an answer is being written:
${chatCommands}
Ctrl-C during an answer stops it, and the conversation continues. Piped lines are executed one after another; while a run
waits for the answer to a question, the next line is executed at once if it is a command.

On a terminal, Markdown is rendered (unless NO_COLOR is set), and the arrow keys recall earlier prompts, which are kept in
svc/chat-history in XDG_STATE_HOME or ~/.local/state.

Examples:
  svc chat ada
  svc chat ada --conversation trip
  printf 'My name is Ann.\\nWho am I?\\n' | svc chat ada`,
	async run(
		cli,
		{ agent, conversation, ...options }: { agent: string; conversation?: string; ids?: boolean; history: boolean },
	) {
		await cli.api.request('GET', path`/v1/agents/${agent}`)
		if (cli.ask.canAsk)
			cli.out.note(
				cli.out.style.dim(`Talking with ${agent}. /help lists the commands, /quit leaves, Ctrl-C stops an answer.`),
			)
		const history = openHistory(options.history ? historyFile(cli.env) : undefined)
		const allAnswered = await converse(cli, agent, { history, conversation, ids: options.ids ? 'full' : 'short' })
		if (!allAnswered && !cli.ask.canAsk) throw new CliError('failed', 'not every prompt was answered')
	},
} satisfies Command

/** The answer that the conversation waits for. */
interface PendingAnswer {
	/** Stops the run. */
	interrupt: AbortController
	/** Stops waiting; the run continues. */
	leave: AbortController
	/** Never rejects. */
	ended: Promise<unknown>
}

/** Lines that can be typed ahead while waiting for an answer; further input is not read. */
const AHEAD_LIMIT = 20

/**
 * Reads lines, each a prompt or a command, until a command leaves the conversation. Commands that are typed during an answer are
 * executed at once. Piped commands are executed in order, unless the run waits for the answer to a question. Returns false if
 * not every prompt was answered.
 */
async function converse(
	cli: Cli,
	agent: string,
	{ history, conversation, ids }: { history: History; conversation: string | undefined; ids: 'short' | 'full' },
): Promise<boolean> {
	const { api, ask, out } = cli
	const lines = await ask.lines('> ', history)
	const ahead: string[] = []
	let pending: PendingAnswer | undefined
	/** The latest command: if it ends an answer that asks a question, it may settle after the answer. */
	let handling: Promise<unknown> = Promise.resolve()
	let isLeaving = false
	let allAnswered = true

	while (!isLeaving) {
		const line = ahead.shift() ?? (await lines.next())
		if (line === undefined) break
		if (line.trim() === '' || (await handleCommand(line)) !== 'none') continue
		if (!(await answered(line.trim()))) allAnswered = false
	}
	return allAnswered

	async function handleCommand(line: string): Promise<CommandOutcome> {
		const text = line.trimEnd()
		// /tool is a prompt for the offline provider; pasted text is never a command.
		if (!text.startsWith('/') || /^\/tool\b/.test(text) || text.includes('\n')) return 'none'
		try {
			const done = execute(text)
			handling = done.catch(() => {})
			return await done
		} catch (error) {
			if (!reported(cli, error)) throw error
			return 'again'
		}
	}

	async function execute(text: string): Promise<CommandOutcome> {
		switch (text) {
			case '/exit':
			case '/quit':
				isLeaving = true
				pending?.leave.abort()
				return 'over'
			case '/new':
				if (conversation !== undefined) {
					out.note(
						'/new works only in the current session. For another conversation, start svc chat with another --conversation.',
					)
					return 'again'
				}
				pending?.interrupt.abort()
				await pending?.ended
				await api.request('POST', path`/v1/agents/${agent}/reset`)
				out.note('New session: the agent no longer sees the previous one.')
				return 'over'
			case '/stop':
				await api.request('POST', path`/v1/agents/${agent}/stop`)
				out.note(`All runs of ${agent} are stopped.`)
				return 'over'
			case '/help':
				out.note(chatCommands)
				return 'again'
			default:
				allAnswered = false
				out.note(`Unknown command ${out.style.plain(text.split(' ', 1)[0] ?? '')}; nothing was sent.\n${chatCommands}`)
				return 'again'
		}
	}

	/** A prompt that fails does not end the conversation. */
	async function answered(prompt: string): Promise<boolean> {
		const over = new AbortController()
		const listening = Promise.withResolvers<void>()
		const interrupt = new AbortController()
		const leave = new AbortController()
		const followed = cli.interruptible((signal) =>
			startRun(cli, agent, prompt, {
				signal: AbortSignal.any([signal, interrupt.signal]),
				leave: leave.signal,
				conversation,
				ids,
				stuck: listening.resolve,
				// An answer may begin with a slash, so only exact commands count.
				command: async (text) => (commands.has(text) ? handleCommand(text) : 'none'),
			}),
		)
		const ended = followed.catch(() => {})
		pending = { interrupt, leave, ended }
		if (ask.canAsk) listening.resolve()
		void ended.then(() => {
			pending = undefined
			over.abort()
			listening.resolve()
		})
		const listened = listening.promise
			.then(() => listen(over.signal))
			.catch((error: unknown) => {
				leave.abort()
				throw error
			})
		const [answer, input] = await Promise.allSettled([followed, listened])
		await handling
		for (const settled of [answer, input])
			if (settled.status === 'rejected' && !reported(cli, settled.reason)) throw settled.reason
		return answer.status === 'fulfilled' && !leave.signal.aborted
	}

	async function listen(until: AbortSignal): Promise<void> {
		for (;;) {
			const line = await lines.meanwhile(until)
			if (line === undefined) return
			if (line.trim() === '' || (await handleCommand(line)) !== 'none') continue
			ahead.push(line)
			if (!ask.canAsk || ahead.length === AHEAD_LIMIT) return
			out.note(out.style.dim('  (will be sent after this answer)'))
		}
	}
}

/** Shows an error that does not end the conversation. False for other errors. */
function reported({ signal, out }: Cli, error: unknown): boolean {
	if (!(error instanceof CliError) || signal.aborted) return false
	if (!['failed', 'conflict', 'interrupted'].includes(error.exit)) return false
	if (error.message) out.note(out.style.bad(error.message))
	return true
}

const commands = new Set(['/new', '/stop', '/exit', '/quit', '/help'])
