import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { startRun } from '../follow-run.ts'
import type { Run } from '../follow-run.ts'

export const register: Register = (program, cli) => {
	program
		.command('run <agent> <prompt...>')
		.description(
			'Give an agent a prompt and follow its answer as it is made. Ctrl-C stops the run; a second one leaves at once.',
		)
		.option('--detach', 'only start the run, and show its id')
		.action(async (agent: string, words: string[], options: { detach?: boolean }) => {
			const prompt = await promptOf(words)
			if (!options.detach) return void (await startRun(cli, agent, prompt))
			const started = await cli.api.request<Run>('POST', path`/v1/agents/${agent}/runs`, { prompt })
			cli.out.answer(started, (run) => run.run_id)
		})
		.addHelpText('after', examples)

	/** A lone - stands for standard input. */
	async function promptOf(words: string[]): Promise<string> {
		const prompt = words.length === 1 && words[0] === '-' ? String(await cli.ask.input()) : words.join(' ')
		if (prompt.trim() === '') throw new CliError('usage', 'the prompt is empty')
		return prompt
	}
}

const examples = `
The answer goes to standard output; tool calls, questions and the rest to standard error.
Exit code: 0 completed, 1 failed or stopped, 130 after Ctrl-C.
A token needs runs:write, and to follow the run events:read and agents:read.
A prompt that begins with - stands behind --: svc run ada -- "- milk, - eggs"

Examples:
  svc run ada "What is new?"
  git diff | svc run ada - > review.md
  svc run ada --quiet "Summarize the day" | mail -s Today me@example.com
  svc run ada --json "Hello" | jq -r .event_type
  svc runs follow $(svc run ada --detach "Take your time")`
