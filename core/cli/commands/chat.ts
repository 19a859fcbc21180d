import { chatCommands, converse } from '../chat.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'

export const register: Register = (program, cli) => {
	program
		.command('chat <agent>')
		.description('Talk with an agent: each line is a prompt, in the session that its runs share')
		.action(async (agent: string) => {
			const { api, ask, out } = cli
			await api.request('GET', path`/v1/agents/${agent}`)
			if (ask.canAsk)
				out.note(out.style.dim(`Talking with ${agent}. /new, /stop, /exit, /help; Ctrl-C stops an answer.`))
			const allAnswered = await converse(cli, agent)
			if (!allAnswered && !ask.canAsk) throw new CliError('failed', 'not every prompt was answered')
		})
		.addHelpText('after', examples)
}

const examples = `
At the prompt, also while an answer is made:
${chatCommands}
Ctrl-C in the middle of an answer stops it, and the conversation goes on. Piped lines are taken one after another; while a
run waits for the answer to a question, the next one is taken if it is a command.

Examples:
  svc chat ada
  printf 'My name is Ann.\\nWho am I?\\n' | svc chat ada`
