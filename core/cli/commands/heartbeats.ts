import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { textInput } from '../text-input.ts'
import { when } from '../when.ts'

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

interface Times {
	cron?: string
	timezone?: string
	every?: string
}

export const register: Register = (program, cli) => {
	const heartbeats = program.command('heartbeats').description('Start runs by the clock').addHelpText('after', examples)

	heartbeats
		.command('list <agent>')
		.description('List the heartbeats of an agent')
		.action(async (agent: string) => {
			const list = await cli.api.request<Heartbeat[]>('GET', path`/v1/agents/${agent}/heartbeats`)
			cli.out.answer(list, (all, style) =>
				style.table(
					['id', 'times', 'next', 'last', 'prompt'],
					all.map((one) => [one.id, timesOf(one), when(one.next_at), when(one.last_at), one.prompt]),
					`No heartbeats yet. Add one: svc heartbeats add ${agent} "What is new?" --every 1h`,
				),
			)
		})

	heartbeats
		.command('add <agent> <prompt...>')
		.description('Start the agent with this prompt at these times; - reads the prompt from standard input')
		.option('--cron <times>', 'minute hour day month weekday, such as "0 9 * * 1-5"')
		.option('--timezone <name>', 'the timezone of --cron, such as Europe/Berlin; default UTC')
		.option('--every <distance>', 'in place of --cron: 30m, 6h, 1d')
		.action(async (agent: string, words: string[], { cron, timezone, every }: Times) => {
			if ((cron === undefined) === (every === undefined))
				throw new CliError('usage', 'give either --cron or --every: when the agent starts')
			const prompt = words.length === 1 && words[0] === '-' ? await textInput(cli, '-') : words.join(' ')
			const times = Object.entries({ cron, timezone, every }).filter(([, value]) => value !== undefined)
			const body = { prompt, ...Object.fromEntries(times) }
			const made = await cli.api.request<Heartbeat>('POST', path`/v1/agents/${agent}/heartbeats`, body)
			cli.out.answer(made, (one) => `Added ${one.id}: ${agent} starts next at ${when(one.next_at)}.`)
		})

	heartbeats
		.command('remove <agent> <id>')
		.description('Remove a heartbeat; runs that it started go on')
		.option(...yesOption)
		.action(async (agent: string, id: string, options: { yes?: boolean }) => {
			await consent(cli, options, `Remove the heartbeat ${id} of ${agent}?`)
			const removed = await cli.api.request('DELETE', path`/v1/agents/${agent}/heartbeats/${id}`)
			cli.out.answer(removed, () => `Removed ${id}.`)
		})
}

function timesOf({ cron, timezone, every }: Heartbeat): string {
	return cron === null ? `every ${every}` : `${cron} ${timezone ?? 'UTC'}`
}

const examples = `
Examples:
  svc heartbeats add ada "Look at the news." --cron "0 9 * * 1-5" --timezone Europe/Berlin
  svc heartbeats add ada "Check the queue." --every 30m
  svc heartbeats remove ada HEARTBEAT_ID`
