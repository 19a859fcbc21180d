import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { count } from '../../../core/cli/count.ts'

interface ContextView {
	conversation: string
	budget: number
	tokens: number
	items: { kind: string; run_id?: string; shown?: string; tokens: number }[]
	summary: { turns: number; text: string } | null
}

/** Runs among which the newest conversation is looked for. */
const RUNS = 50
/** Of the gateway's own work. */
const OWN = ['summary', 'compaction']

export default {
	examples: `
Examples:
  svc conversations context ada
  svc conversations compact ada`,
	commands: {
		context: {
			description: 'Show what the next request to the model holds, with estimated tokens, and the newest summary',
			arguments: '<agent> [conversation]',
			async run(cli, { agent, conversation: given }: { agent: string; conversation?: string }) {
				const conversation = given ?? (await newest(cli, agent))
				const where = path`/v1/agents/${agent}/conversations/${conversation}/context`
				cli.out.answer(await cli.api.request<ContextView>('GET', where), ({ items, tokens, budget, summary }, style) =>
					[
						style.table(
							['part', 'run', 'shown', 'tokens'],
							items.map((one) => [one.kind, one.run_id, one.shown, one.tokens]),
							'Nothing yet.',
						),
						`${tokens} of ${budget} tokens.`,
						...(summary ? [`Summary of ${count(summary.turns, 'turn')}:`, summary.text] : []),
					].join('\n'),
				)
			},
		},
		compact: {
			description: 'Summarize all turns but the newest two; the model gets the summary in their place',
			arguments: '<agent> [conversation]',
			async run(cli, { agent, conversation: given }: { agent: string; conversation?: string }) {
				const conversation = given ?? (await newest(cli, agent))
				const where = path`/v1/agents/${agent}/conversations/${conversation}/compact`
				const started = await cli.api.request<{ turns: number }>('POST', where)
				cli.out.answer(started, ({ turns }) => `Summarizing ${count(turns, 'turn')}.`)
				cli.out.note(`To see the summary: svc conversations context ${agent}`)
			},
		},
		delete: {
			description: 'Delete a conversation with its runs, messages and summary; memories stay',
			arguments: '<agent> <conversation>',
			options: {
				...yesOption,
			},
			async run(cli, { agent, conversation, ...options }: { agent: string; conversation: string; yes?: boolean }) {
				await consent(cli, options, `Delete the conversation ${conversation} of ${agent} for good?`)
				await cli.api.request('DELETE', path`/v1/agents/${agent}/conversations/${conversation}`)
				cli.out.answer({ conversation, status: 'deleted' }, () => 'Deleted.')
			},
		},
	},
} satisfies Command

/** The conversation of the agent's newest run. */
async function newest(cli: Cli, agent: string): Promise<string> {
	const where = path`/v1/agents/${agent}/runs?limit=${RUNS}`
	const runs = await cli.api.request<{ conversation: string; trigger: string }[]>('GET', where)
	const run = runs.find(({ trigger }) => !OWN.includes(trigger))
	if (!run) throw new CliError('not_found', `${agent} has no conversation yet`)
	return run.conversation
}
