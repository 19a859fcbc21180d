import { defined } from '../../../core/util/defined.ts'
import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import { deliverIn } from '../../../core/cli/option-values.ts'
import { answerList } from '../../../core/cli/lists.ts'
import { textOf } from '../../../core/cli/text-input.ts'
import { when, whenWithZone } from '../../../core/cli/when.ts'
import type { Heartbeat, HeartbeatRequest } from '../contract.ts'

interface HeartbeatOptions extends Pick<HeartbeatRequest, 'cron' | 'timezone' | 'every' | 'at'> {
	deliver?: string
}

const options = {
	'--cron <times>': 'minute hour day month weekday, such as "0 9 * * 1-5"',
	'--timezone <name>': 'the timezone of --cron or --at, such as Europe/Berlin; default: that of the agent, or UTC',
	'--every <interval>': 'instead of --cron: 30m, 6h, 1d',
	'--at <time>': 'instead of --cron, once: 2030-03-31T09:00:00Z, or "in 20 minutes"',
	'--deliver <channel:chat>': 'a chat of the agent that gets the answers, such as telegram:42; or none',
}

export default {
	examples: `
Examples:
  svc heartbeats add ada "Look at the news." --cron "0 9 * * 1-5" --timezone Europe/Berlin
  svc heartbeats add ada "Check the queue." --every 30m --deliver telegram:42
  svc heartbeats add ada "Say that the tea is ready." --at "in 4 minutes"
  svc heartbeats change ada HEARTBEAT_ID --every 1h
  svc heartbeats pause ada HEARTBEAT_ID
  svc heartbeats remove ada HEARTBEAT_ID`,
	commands: {
		list: {
			description: 'List the heartbeats of an agent or of all agents',
			arguments: '[agent]',
			run: (cli, { agent }: { agent?: string }) =>
				answerList(cli, agent, {
					of: (name) => cli.api.request<Heartbeat[]>('GET', path`/v1/agents/${name}/heartbeats`),
					empty: (name) => `No heartbeats yet. Add one: svc heartbeats add ${name} "What is new?" --every 1h`,
					row: (one) => ({
						id: one.id,
						times: timesOf(one),
						next: one.next_at === null ? 'paused' : whenWithZone(one.next_at), // the schedule may have another timezone
						last: when(one.last_at),
						prompt: one.prompt,
					}),
				}),
		},
		add: {
			description: 'Start the agent with this prompt at these times; - reads the prompt from standard input',
			arguments: '<agent> <prompt...>',
			options,
			async run(cli, { agent, prompt: words, ...given }: { agent: string; prompt: string[] } & HeartbeatOptions) {
				const { cron, every, at } = given
				if ([cron, every, at].filter((one) => one !== undefined).length !== 1)
					throw new CliError('usage', 'give one of --cron, --every and --at: when the agent starts')
				const prompt = await textOf(cli, words)
				const body = { prompt, ...bodyOf(given) }
				const made = await cli.api.request<Heartbeat>('POST', path`/v1/agents/${agent}/heartbeats`, body)
				cli.out.answer(made, (one) => `Added ${one.id}: ${agent} starts next at ${whenWithZone(one.next_at)}.`)
			},
		},
		change: {
			description: 'Change when a heartbeat starts runs, or their prompt; - reads the prompt from standard input',
			arguments: '<agent> <id> [prompt...]',
			options,
			async run(
				cli,
				{ agent, id, prompt: words = [], ...given }: HeartbeatArguments & { prompt?: string[] } & HeartbeatOptions,
			) {
				const prompt = await textOf(cli, words)
				const body = { ...(prompt !== '' && { prompt }), ...bodyOf(given) }
				if (Object.keys(body).length === 0)
					throw new CliError('usage', 'give a prompt, or one of --cron, --every, --at, --timezone and --deliver')
				await change(cli, { agent, id }, body)
			},
		},
		pause: {
			description: 'Pause a heartbeat: it starts no runs',
			arguments: '<agent> <id>',
			run: (cli, named: HeartbeatArguments) => change(cli, named, { paused: true }),
		},
		resume: {
			description: 'Resume a heartbeat; it counts from now',
			arguments: '<agent> <id>',
			run: (cli, named: HeartbeatArguments) => change(cli, named, { paused: false }),
		},
		remove: {
			description: 'Remove a heartbeat; runs that it started continue',
			arguments: '<agent> <id>',
			options: yesOption,
			async run(cli, { agent, id, ...options }: { agent: string; id: string; yes?: boolean }) {
				await consent(cli, options, `Remove the heartbeat ${id} of ${agent}?`)
				const removed = await cli.api.request('DELETE', path`/v1/agents/${agent}/heartbeats/${id}`)
				cli.out.answer(removed, () => `Removed ${id}.`)
			},
		},
	},
} satisfies Command

interface HeartbeatArguments {
	agent: string
	id: string
}

async function change(cli: Cli, { agent, id }: HeartbeatArguments, body: object): Promise<void> {
	const changed = await cli.api.request<Heartbeat>('PATCH', path`/v1/agents/${agent}/heartbeats/${id}`, body)
	cli.out.answer(changed, ({ next_at }) =>
		next_at === null ? `Paused ${id}.` : `Changed ${id}: ${agent} starts next at ${whenWithZone(next_at)}.`,
	)
}

function bodyOf({ cron, timezone, every, at, deliver }: HeartbeatOptions): object {
	return defined({ cron, timezone, every, at, deliver: deliver === undefined ? undefined : deliverIn(deliver) })
}

function timesOf({ cron, timezone, every, at }: Heartbeat): string {
	if (at !== null) return 'once'
	return cron === null ? `every ${every}` : `${cron} ${timezone ?? 'UTC'}`
}
