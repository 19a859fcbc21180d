import type { Command } from '../../../core/cli/command.ts'
import { defined } from '../../../core/util/defined.ts'
import { pages } from '../../../core/cli/pages.ts'
import { lineOf, queryOf, filterOptions, withRunId } from './event-filter.ts'
import type { EventPage, FilterOptions } from './event-filter.ts'
import { pointInTime } from '../../../core/cli/option-values.ts'

interface AuditOptions extends FilterOptions {
	since?: string
	until?: string
	actor?: string
	cursor?: string
	limit: number
	all?: boolean
}

export default {
	description: 'Read past events, newest first',
	options: {
		...filterOptions,
		'--since <time>': 'at or after this time: ISO 8601, or how long ago, such as 30m, 12h or 7d',
		'--until <time>': 'before this time, in the same form',
		'--actor <id>': 'caused by this token, channel, webhook or agent, or by "local" or "gateway"',
		'--limit <n>': { about: 'how many', max: 1_000_000, default: 50 },
		'--all': 'without a limit',
		'--cursor <cursor>': 'continue after an earlier page',
	},
	examples: `
With --json, each line is one event.

Examples:
  svc audit --agent ada --limit 20
  svc audit --since 24h --type security.violation
  svc audit --all --json > events.ndjson
  svc audit --json --type run.failed | jq -r .payload.error`,
	async run(cli, given: AuditOptions) {
		const options = await withRunId(cli, given)
		const { limit, all = false, since, until, actor, cursor } = options
		const query = {
			...queryOf(options),
			...(since !== undefined && { since: pointInTime(since) }),
			...(until !== undefined && { until: pointInTime(until) }),
			...defined({ actor, cursor }),
		}
		let next: string | null = null
		let isEmpty = true
		for await (const page of pages<EventPage>(cli, '/v1/audit', 'events', all ? Infinity : limit, query)) {
			for (const event of page.events) {
				cli.out.line(event)
				cli.out.write(`${lineOf(event, cli.out.style, { ...options, dated: true })}\n`)
			}
			next = page.next_cursor
			isEmpty &&= page.events.length === 0
		}
		if (isEmpty) cli.out.note(cli.out.style.dim('(no such events)'))
		if (next !== null) cli.out.note(cli.out.style.dim(`(there are older events; continue with --cursor ${next})`))
	},
} satisfies Command
