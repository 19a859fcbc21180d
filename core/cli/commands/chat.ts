import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { startRun } from '../follow-run.ts'

export const register: Register = (program, cli) => {
	program
		.command('chat <agent>')
		.description('Talk with an agent: each line is a prompt, in the session that its runs share')
		.action(async (agent: string) => {
			const { api, ask, out } = cli
			await api.request('GET', path`/v1/agents/${agent}`)
			if (ask.canAsk) out.note(out.style.dim(`Talking with ${agent}. /new, /stop, /exit; Ctrl-C stops an answer.`))
			let failed = false
			for await (const line of ask.lines('> ')) {
				const prompt = line.trim()
				if (prompt === '/exit') break
				else if (prompt === '/new') {
					await api.request('POST', path`/v1/agents/${agent}/reset`)
					out.note('A new session: the agent remembers nothing of this one.')
				} else if (prompt === '/stop') {
					await api.request('POST', path`/v1/agents/${agent}/stop`)
					out.note(`Nothing of ${agent} runs any more.`)
				} else if (prompt !== '') failed = !(await talk(agent, prompt)) || failed
			}
			if (failed && !ask.canAsk) throw new CliError('failed', 'not every prompt was answered')
		})
		.addHelpText('after', examples)

	/** A prompt that fails does not end the conversation. False where it did. */
	async function talk(agent: string, prompt: string): Promise<boolean> {
		try {
			await cli.interruptible((signal) => startRun(cli, agent, prompt, signal))
			return true
		} catch (error) {
			const goesOn = error instanceof CliError && ['failed', 'conflict', 'interrupted'].includes(error.exit)
			if (!goesOn || cli.signal.aborted) throw error
			if (error.message) cli.out.note(cli.out.style.bad(error.message))
			return false
		}
	}
}

const examples = `
At the prompt:
  /new    begin a new session
  /stop   stop every run of the agent
  /exit   leave, as Ctrl-C and Ctrl-D do
Ctrl-C in the middle of an answer stops it, and the conversation goes on.

Examples:
  svc chat ada
  printf 'My name is Ann.\\nWho am I?\\n' | svc chat ada`
