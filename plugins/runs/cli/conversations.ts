import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli, Style } from '../../../core/cli/contract.ts'
import { answerTable, tableOf } from '../../../core/cli/lists.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import { shortId } from '../../../core/cli/short-ids.ts'
import { when } from '../../../core/cli/when.ts'
import type { ContextReport } from '../contract.ts'
import type { Conversation, Turn } from '../conversations.ts'
import { pages } from '../../../core/cli/pages.ts'
import type { Run } from './run-record.ts'

type ListedConversation = Omit<Conversation, 'newest_run'> & { newest_run: Run }

type ShownConversation = Omit<Conversation, 'newest_run'> & {
	newest_run: Run | null
	turns: (Pick<Run, 'run_id' | 'status'> & Pick<Turn, 'messages'>)[]
}

interface Named {
	agent: string
	conversation?: string
}

export default {
	examples: `
By default, show, context and compact use the conversation with the agent's newest run.

Examples:
  svc conversations list ada
  svc conversations show ada --limit 5
  svc conversations context ada
  svc conversations compact ada`,
	commands: {
		list: {
			description: 'List the conversations of an agent, those with the newest runs first',
			arguments: '<agent>',
			options: { '--limit <n>': { about: 'how many', max: 10_000, default: 20 } },
			async run(cli, { agent, limit }: { agent: string; limit: number }) {
				const empty = `No conversation yet. Begin one: svc chat ${agent}`
				answerTable(cli, await list(cli, agent, limit), empty, ({ conversation, is_session, newest_run: run }) => ({
					conversation,
					by: is_session ? `${run.trigger}, current session` : run.trigger,
					'newest run': shortId(run.run_id),
					status: run.status,
					created: when(run.created_at),
					prompt: run.prompt,
				}))
			},
		},
		show: {
			description: 'Show the newest turns of a conversation, oldest first',
			arguments: '<agent> [conversation]',
			options: { '--limit <n>': { about: 'how many turns', max: 10_000, default: 20 } },
			async run(cli, { limit, ...named }: Named & { limit: number }) {
				cli.out.answer(await read(cli, await addressOf(cli, named), limit), shown)
			},
		},
		context: {
			description: 'Show the content of the next request to the model, with estimated tokens, and the newest summary',
			arguments: '<agent> [conversation]',
			async run(cli, named: Named) {
				const report = await cli.api.request<ContextReport>('GET', `${await addressOf(cli, named)}/context`)
				cli.out.answer(report, ({ items, tokens, budget, summary }, style) =>
					[
						tableOf(items, style, 'Nothing yet.', (one) => ({
							part: one.kind,
							run: one.run_id,
							shown: one.shown,
							tokens: one.tokens,
						})),
						`${tokens} of ${budget} tokens.`,
						...(summary ? [`Summary of ${pluralize(summary.turns, 'turn')}:`, summary.text] : []),
					].join('\n'),
				)
			},
		},
		compact: {
			description: 'Summarize all turns but the newest two; the model gets the summary in their place',
			arguments: '<agent> [conversation]',
			async run(cli, named: Named) {
				const started = await cli.api.request<{ turns: number }>('POST', `${await addressOf(cli, named)}/compact`)
				cli.out.answer(started, ({ turns }) => `Summarizing ${pluralize(turns, 'turn')}.`)
				cli.out.note(`To see the summary: svc conversations context ${named.agent}`)
			},
		},
		delete: {
			description: 'Delete a conversation with its runs, messages and summary; memories stay',
			arguments: '<agent> <conversation>',
			options: yesOption,
			async run(cli, { agent, conversation, ...options }: { agent: string; conversation: string; yes?: boolean }) {
				await consent(cli, options, `Delete the conversation ${conversation} of ${agent} permanently?`)
				await cli.api.request('DELETE', path`/v1/agents/${agent}/conversations/${conversation}`)
				cli.out.answer({ conversation, status: 'deleted' }, () => 'Deleted.')
			},
		},
	},
} satisfies Command

async function list(cli: Cli, agent: string, limit: number): Promise<ListedConversation[]> {
	const where = path`/v1/agents/${agent}/conversations`
	const found = pages<{ conversations: ListedConversation[] }>(cli, where, 'conversations', limit)
	return (await Array.fromAsync(found)).flatMap(({ conversations }) => conversations)
}

async function read(cli: Cli, where: string, limit: number): Promise<ShownConversation> {
	const found = await Array.fromAsync(pages<ShownConversation>(cli, where, 'turns', limit))
	return { ...found.at(-1)!, turns: found.flatMap(({ turns }) => turns) }
}

function shown({ conversation, is_session, created_at, newest_run, turns }: ShownConversation, style: Style): string {
	const fields = style.fields([
		['conversation', is_session ? `${conversation} (current session)` : conversation],
		['by', newest_run?.trigger ?? ''],
		['created', when(created_at)],
	])
	const lines = turns.toReversed().flatMap(({ run_id, status, messages }) => [
		`${when(messages[0]?.timestamp ?? null)} ${shortId(run_id)}${status === 'completed' ? '' : ` (${status})`}`,
		// Indented, so that no line of a message looks like another message.
		...messages.map(
			({ role, content }) => `${role}: ${style.plain(content, { lines: true }).replaceAll('\n', '\n  ')}`,
		),
	])
	return [fields, '', ...(lines.length > 0 ? lines : ['Nothing yet.'])].join('\n')
}

/** By default, of the conversation with the agent's newest run. */
async function addressOf(cli: Cli, { agent, conversation }: Named): Promise<string> {
	const name = conversation ?? (await list(cli, agent, 1))[0]?.conversation
	if (name === undefined) throw new CliError('not_found', `${agent} has no conversation yet`)
	return path`/v1/agents/${agent}/conversations/${name}`
}
