import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import { durationIn } from '../../../core/util/duration.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { when } from '../../../core/cli/when.ts'
import type { NewToken, Token } from '../contract.ts'

interface CreateOptions extends LimitOptions {
	scope: string[]
	agent?: string[]
	label?: string
	ttl?: string
}

interface LimitOptions {
	requestsPerMinute?: number
	streams?: number
	runsPerDay?: number
	tokensPerDay?: number
	costPerDay?: string
}

/** The highest limit. */
const max = 1_000_000_000

export default {
	examples: `
Scopes: agents:read agents:write runs:write events:read vault:read vault:write channels:read channels:write
tokens:admin, and * for everything.

Examples:
  svc tokens create --scope agents:read runs:write events:read --ttl 30d
  svc tokens create --scope '*' --json
  svc tokens create --scope agents:read runs:write --agent ada 'team-*' --label 'the ticket system'
  svc tokens revoke TOKEN_ID`,
	commands: {
		list: {
			description: 'List the tokens, without their text',
			async run(cli) {
				const { tokens } = await cli.api.request<{ tokens: Token[] }>('GET', '/v1/auth/tokens')
				answerTable(cli, tokens, "No tokens yet. Create one: svc tokens create --scope '*'", (one) => ({
					id: one.id,
					status: one.status,
					scopes: one.scopes.join(' '),
					agents: one.agents?.join(' ') ?? 'all',
					label: one.label,
					expires: one.expires_at === null ? 'never' : when(one.expires_at),
					created: when(one.created_at),
				}))
			},
		},
		create: {
			description: 'Create a token; it is shown only once',
			options: {
				'--scope <scope...>': { about: 'its permissions, separated by spaces or commas', required: true },
				'--agent <pattern...>': 'the agents that it can use: names, or patterns with *. Default: all',
				'--label <text>': 'a name for it, shown in lists',
				'--requests-per-minute <n>': { about: 'maximum number of requests per minute', max },
				'--streams <n>': { about: 'maximum number of streams open at the same time', max },
				'--runs-per-day <n>': { about: 'maximum number of runs that it starts per day', max },
				'--tokens-per-day <n>': { about: 'maximum number of model tokens that its runs use per day', max },
				'--cost-per-day <amount>': 'maximum cost of its runs per day',
				'--ttl <time>':
					'its lifetime: 12h, 30d, 8w; or when it expires: 2030-01-31T12:00:00Z. Default: it does not expire',
			},
			async run(cli, { scope, agent, label, ttl, ...limits }: CreateOptions) {
				const body = {
					scopes: splitAtCommas(scope),
					agents: agent && splitAtCommas(agent),
					label,
					...(Object.keys(limits).length > 0 && { limits: limitsOf(limits) }),
					ttl: ttl === undefined ? undefined : expiryOf(ttl),
				}
				const created = await cli.api.request<NewToken>('POST', '/v1/auth/tokens', body)
				cli.out.answer(created, ({ token, id, scopes, agents, limits: granted = {}, expires_at }, style) =>
					style.fields([
						['token', token],
						['id', id],
						['scopes', scopes.join(' ')],
						['agents', agents?.join(' ') ?? 'all'],
						...Object.entries(granted).map(([name, limit]): [string, string] => [name, String(limit)]),
						['expires', expires_at === null ? 'never' : when(expires_at)],
					]),
				)
				cli.out.note(
					'The token is not shown again. Clients send it as Authorization: Bearer. svc reads it from SVC_TOKEN; svc login stores it.',
				)
			},
		},
		revoke: {
			description: 'Revoke a token at once, and end its open streams',
			arguments: '<id>',
			options: yesOption,
			async run(cli, { id, ...options }: { id: string; yes?: boolean }) {
				await consent(cli, options, `Revoke the token ${id}?`)
				const revoked = await cli.api.request('DELETE', path`/v1/auth/tokens/${id}`)
				cli.out.answer(revoked, () => `Revoked ${id}.`)
			},
		},
	},
} satisfies Command

/** The limits with the names that the API uses. */
function limitsOf({ requestsPerMinute, streams, runsPerDay, tokensPerDay, costPerDay }: LimitOptions): object {
	const cost = Number(costPerDay)
	if (costPerDay !== undefined && !(cost > 0))
		throw new CliError('usage', `--cost-per-day must be an amount greater than 0, such as 2.50, not "${costPerDay}"`)
	return {
		requests_per_minute: requestsPerMinute,
		streams,
		runs_per_day: runsPerDay,
		tokens_per_day: tokensPerDay,
		cost_per_day: costPerDay && cost,
	}
}

function splitAtCommas(values: readonly string[]): string[] {
	return [...new Set(values.flatMap((text) => text.split(',')).filter((text) => text !== ''))]
}

/** When a token expires: a duration from now such as `30d`, or a point in time, which the gateway validates. */
function expiryOf(text: string, now = Date.now()): string {
	const end = new Date(now + durationIn(text, 'mhdw'))
	if (Number.isNaN(end.getTime())) {
		if (/^\d{4}-/.test(text)) return text
		throw new CliError(
			'usage',
			'--ttl must be a number with m, h, d or w, such as 30d, or a time: 2030-01-31T12:00:00Z',
		)
	}
	if (end.getTime() === now) throw new CliError('usage', '--ttl must be greater than 0')
	return end.toISOString()
}
