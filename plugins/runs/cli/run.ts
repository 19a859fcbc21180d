import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import { textOf } from '../../../core/cli/text-input.ts'
import { uploaded } from './files.ts'
import { runOf, startRun } from './follow-run.ts'
import type { Run } from './run-record.ts'

interface RunArguments {
	agent: string
	prompt: string[]
	attach?: string[]
	conversation?: string
	detach?: boolean
}

export default {
	description:
		'Give an agent a prompt and follow its answer as it is written. Ctrl-C stops the run; a second one leaves at once.',
	arguments: '<agent> [prompt...]',
	options: {
		'--attach <file...>':
			'images, files and recordings for the agent; put this option after the prompt, which may then be absent',
		'--conversation <name>': 'name of the conversation; the first run creates it; default: the current session',
		'--detach': 'only start the run, and show its id',
	},
	examples: `
The answer is written to standard output; tool calls, questions and all else to standard error.
Exit code: 0 completed, 1 failed or stopped, 130 after Ctrl-C.
Without a terminal, svc prints a question of the agent with the command that answers it, and waits for the answer, which may
take days. To avoid that, start the run with --detach, or prevent questions: in the agent's config.tools, deny the tool ask,
and allow or deny every tool that would wait for approval.
A token needs the scopes runs:write, events:read and agents:read; with --detach only runs:write.
Put a prompt that begins with - after --: svc run ada -- "- milk, - eggs"

Examples:
  svc run ada "What is new?"
  git diff | svc run ada - > review.md
  svc run ada "What is on it?" --attach photo.jpg
  svc run ada --conversation trip "Where can I stay in Turin?"
  svc run ada --quiet "Summarize the day" | mail -s Today me@example.com
  svc run ada --json "Hello" | jq -r .event_type
  svc runs follow $(svc run ada --detach "Take your time")`,
	async run(cli, { agent, prompt: words, attach = [], conversation, detach }: RunArguments) {
		const prompt = await textOf(cli, words)
		if (prompt.trim() === '' && attach.length === 0) throw new CliError('usage', 'the prompt is empty')
		const attachments = await uploaded(cli, agent, attach)
		const extras = { attachments, conversation }
		if (!detach) return void (await startRun(cli, agent, prompt, extras))
		const started = await cli.api.request<Run>('POST', path`/v1/agents/${agent}/runs`, runOf(prompt, extras))
		cli.out.answer(started, (run) => run.run_id)
	},
} satisfies Command
