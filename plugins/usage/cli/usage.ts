import { defined } from '../../../core/util/defined.ts'
import type { Command } from '../../../core/cli/command.ts'
import { pointInTime } from '../../../core/cli/option-values.ts'
import { costText } from '../../shared/cost-text.ts'
import type { Counted, RunFigures, UsageReport } from '../contract.ts'

interface Options {
	by: string
	since?: string
	until?: string
}

export default {
	description: 'Show runs, tokens and cost, by agent, model or day (UTC)',
	examples: `
Examples:
  svc usage
  svc usage ada --by day --since 2026-11-01
  svc usage --since 7d
  svc usage --by model --json | jq .total.cost`,
	arguments: '[agent]',
	options: {
		'--by <what>': { about: 'what one row is', choices: ['agent', 'model', 'day'], default: 'agent' },
		'--since <day>': 'the first day, as a date such as 2026-11-01 or an age such as 7d; default: the last 30 days',
		'--until <day>': 'the day after the last one',
	},
	async run(cli, { agent, by, since, until }: { agent?: string } & Options) {
		const [first, end] = [since, until].map((day) => day && pointInTime(day))
		const query = new URLSearchParams(defined({ agent_id: agent, by, since: first, until: end }))
		const report = await cli.api.request<UsageReport>('GET', `/v1/usage?${query.toString()}`)
		cli.out.answer(report, ({ rows, total }, style) =>
			style.table(
				[report.by, 'runs', 'failed', 'calls', 'in', 'cached', 'out', 'cost', 'unpriced'],
				rows.length === 0
					? []
					: [
							...rows.map((row) => cells(row.agent_id ?? row.day ?? `${row.provider} (${row.model})`, row)),
							cells('total', total),
						],
				'No usage in these days.',
			),
		)
	},
} satisfies Command

function cells(name: string, row: Counted & { runs?: RunFigures }): string[] {
	const { calls, input_tokens, cached_tokens, output_tokens, cost, unpriced_tokens, runs } = row
	const numbers = [calls, input_tokens, cached_tokens, output_tokens].map(String)
	return [
		name,
		...(runs ? [runs.completed + runs.failed, runs.failed].map(String) : ['', '']),
		...numbers,
		cost === null ? '' : costText(cost),
		unpriced_tokens === 0 ? '' : `${unpriced_tokens} tokens`,
	]
}
