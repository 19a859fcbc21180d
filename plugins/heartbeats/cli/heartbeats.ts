import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import { pairIn } from '../../../core/cli/pair.ts'
import { textInput } from '../../../core/cli/text-input.ts'
import { when } from '../../../core/cli/when.ts'

interface Heartbeat {
	id: string
	cron: string | null
	timezone: string | null
	every: string | null
	prompt: string
	created_at: string
	next_at: string
	last_at: string | null
}

interface NewHeartbeat {
	agent: string
	prompt: string[]
	cron?: string
	timezone?: string
	every?: string
	deliver?: string
}

export default {
	examples: `
Examples:
  svc heartbeats add ada "Look at the news." --cron "0 9 * * 1-5" --timezone Europe/Berlin
  svc heartbeats add ada "Check the queue." --every 30m --deliver telegram:42
  svc heartbeats remove ada HEARTBEAT_ID`,
	commands: {
		list: {
			description: 'List the heartbeats of an agent',
			arguments: '<agent>',
			async run(cli, { agent }: { agent: string }) {
				const list = await cli.api.request<Heartbeat[]>('GET', path`/v1/agents/${agent}/heartbeats`)
				cli.out.answer(list, (all, style) =>
					style.table(
						['id', 'times', 'next', 'last', 'prompt'],
						all.map((one) => [one.id, timesOf(one), when(one.next_at), when(one.last_at), one.prompt]),
						`No heartbeats yet. Add one: svc heartbeats add ${agent} "What is new?" --every 1h`,
					),
				)
			},
		},
		add: {
			description: 'Start the agent with this prompt at these times; - reads the prompt from standard input',
			arguments: '<agent> <prompt...>',
			options: {
				'--cron <times>': 'minute hour day month weekday, such as "0 9 * * 1-5"',
				'--timezone <name>': 'the timezone of --cron, such as Europe/Berlin; default UTC',
				'--every <interval>': 'instead of --cron: 30m, 6h, 1d',
				'--deliver <channel:chat>': 'a chat of the agent that gets the answers, such as telegram:42',
			},
			async run(cli, { agent, prompt: words, cron, timezone, every, deliver }: NewHeartbeat) {
				if ((cron === undefined) === (every === undefined))
					throw new CliError('usage', 'give either --cron or --every: when the agent starts')
				const prompt = words.length === 1 && words[0] === '-' ? await textInput(cli, '-') : words.join(' ')
				const times = Object.entries({ cron, timezone, every }).filter(([, value]) => value !== undefined)
				const [channel, chat] = deliver === undefined ? [] : pairIn(deliver, '--deliver', 'telegram:42')
				const to = channel === undefined ? {} : { deliver: { channel, chat } }
				const body = { prompt, ...Object.fromEntries(times), ...to }
				const made = await cli.api.request<Heartbeat>('POST', path`/v1/agents/${agent}/heartbeats`, body)
				cli.out.answer(made, (one) => `Added ${one.id}: ${agent} starts next at ${when(one.next_at)}.`)
			},
		},
		remove: {
			description: 'Remove a heartbeat; runs that it started continue',
			arguments: '<agent> <id>',
			options: {
				...yesOption,
			},
			async run(cli, { agent, id, ...options }: { agent: string; id: string; yes?: boolean }) {
				await consent(cli, options, `Remove the heartbeat ${id} of ${agent}?`)
				const removed = await cli.api.request('DELETE', path`/v1/agents/${agent}/heartbeats/${id}`)
				cli.out.answer(removed, () => `Removed ${id}.`)
			},
		},
	},
} satisfies Command

function timesOf({ cron, timezone, every }: Heartbeat): string {
	return cron === null ? `every ${every}` : `${cron} ${timezone ?? 'UTC'}`
}
