import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import { textOf } from '../../../core/cli/text-input.ts'
import type { SaidInChat } from '../contract.ts'

export default {
	description: 'Send a message to a chat as its agent, without a run; - reads it from standard input',
	arguments: '<agent> <conversation> <message...>',
	examples: `
The conversation is an id from svc conversations list, of any conversation of the chat. For a chat without messages it is
channel:BINDING_ID, as svc channels bindings --json shows it. A token needs runs:write.

Examples:
  svc say ada channel:BINDING_ID "The backup of tonight is complete."
  ./report | svc say ada channel:BINDING_ID -`,
	async run(cli, { agent, conversation, message: words }: { agent: string; conversation: string; message: string[] }) {
		const content = (await textOf(cli, words)).trimEnd()
		if (content.trim() === '') throw new CliError('usage', 'the message is empty')
		const where = path`/v1/agents/${agent}/conversations/${conversation}/messages`
		const sent = await cli.api.request<SaidInChat>('POST', where, { content })
		cli.out.answer(sent, ({ chat_id }) => `Accepted for the chat ${chat_id}.`)
	},
} satisfies Command
