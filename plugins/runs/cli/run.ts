import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { startRun } from './follow-run.ts'
import type { Run } from './run-record.ts'

export default {
	description:
		'Give an agent a prompt and follow its answer as it is made. Ctrl-C stops the run; a second one leaves at once.',
	arguments: '<agent> <prompt...>',
	options: {
		'--detach': 'only start the run, and show its id',
	},
	examples: `
The answer goes to standard output; tool calls, questions and the rest to standard error.
Exit code: 0 completed, 1 failed or stopped, 130 after Ctrl-C.
A token needs runs:write, and to follow the run events:read and agents:read.
A prompt that begins with - stands behind --: svc run ada -- "- milk, - eggs"

Examples:
  svc run ada "What is new?"
  git diff | svc run ada - > review.md
  svc run ada --quiet "Summarize the day" | mail -s Today me@example.com
  svc run ada --json "Hello" | jq -r .event_type
  svc runs follow $(svc run ada --detach "Take your time")`,
	async run(cli, { agent, prompt: words, ...options }: { agent: string; prompt: string[]; detach?: boolean }) {
		const prompt = await promptOf(cli, words)
		if (!options.detach) return void (await startRun(cli, agent, prompt))
		const started = await cli.api.request<Run>('POST', path`/v1/agents/${agent}/runs`, { prompt })
		cli.out.answer(started, (run) => run.run_id)
	},
} satisfies Command

/** A single - means standard input. */
async function promptOf(cli: Cli, words: string[]): Promise<string> {
	const prompt = words.length === 1 && words[0] === '-' ? String(await cli.ask.input()) : words.join(' ')
	if (prompt.trim() === '') throw new CliError('usage', 'the prompt is empty')
	return prompt
}
