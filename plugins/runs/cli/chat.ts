import { chatCommands, converse } from './converse.ts'
import { historyFile, openHistory } from './chat-history.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'

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
