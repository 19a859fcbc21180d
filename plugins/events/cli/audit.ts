import type { EventEnvelope } from '../../../core/store/ports.ts'
import type { Command } from '../../../core/cli/command.ts'
import { lineOf, queryOf, filterOptions, withRunId } from './event-filter.ts'
import type { FilterOptions } from './event-filter.ts'
import { pointInTime } from '../../../core/cli/time-input.ts'

interface Page {
	events: EventEnvelope[]
	next_cursor: string | null
}

interface AuditOptions extends FilterOptions {
	since?: string
	until?: string
	actor?: string
	cursor?: string
	limit: number
	all?: boolean
}

/** The gateway's own limit for one page. */
const PAGE = 500

export default {
	description: 'Read past events, newest first',
	options: {
		...filterOptions,
		'--since <time>': 'at or after this time, ISO 8601, or this long ago, such as 30m, 12h or 7d',
		'--until <time>': 'before this time, written the same way',
		'--actor <id>': 'caused by this token, channel, webhook or agent, or by "local" or "gateway"',
		'--limit <n>': { about: 'how many', max: 1_000_000, default: 50 },
		'--all': 'all there are',
		'--cursor <cursor>': 'continue after an earlier page',
	},
	examples: `
With --json each line is one event.

Examples:
  svc audit --agent ada --limit 20
  svc audit --since 24h --type security.violation
  svc audit --all --json > events.ndjson
  svc audit --json --type run.failed | jq -r .payload.error`,
	async run(cli, given: AuditOptions) {
		const options = await withRunId(cli, given)
		const { limit, all = false, since, until, actor } = options
		let left = all ? Infinity : limit
		let cursor = options.cursor ?? null
		do {
			const query = new URLSearchParams({
				...queryOf(options),
				...(since !== undefined && { since: pointInTime(since) }),
				...(until !== undefined && { until: pointInTime(until) }),
				...(actor !== undefined && { actor }),
				limit: String(Math.min(PAGE, left)),
				...(cursor !== null && { cursor }),
			})
			const page = await cli.api.request<Page>('GET', `/v1/audit?${query.toString()}`)
			for (const event of page.events) {
				cli.out.line(event)
				cli.out.write(`${lineOf(event, cli.out.style, options)}\n`)
			}
			left -= page.events.length
			cursor = page.next_cursor
		} while (left > 0 && cursor !== null)
		if (cursor !== null) cli.out.note(cli.out.style.dim(`(there are older ones; continue with --cursor ${cursor})`))
	},
} satisfies Command
