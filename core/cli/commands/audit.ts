import type { EventEnvelope } from '../../store/ports.ts'
import type { Register } from '../contract.ts'
import { lineOf, queryOf, withFilter } from '../event-filter.ts'
import type { FilterOptions } from '../event-filter.ts'
import { countOption } from '../options.ts'

interface Page {
	events: EventEnvelope[]
	next_cursor: string | null
}

interface AuditOptions extends FilterOptions {
	since?: string
	until?: string
	cursor?: string
	limit: number
	all?: boolean
}

/** The gateway's own limit for one page. */
const PAGE = 500

export const register: Register = (program, cli) => {
	const { api, out } = cli
	withFilter(program.command('audit'))
		.description('Read past events, newest first')
		.option('--since <time>', 'at or after this time, ISO 8601, or so long ago, such as 30m, 12h or 7d')
		.option('--until <time>', 'before this time, written the same way')
		.addOption(countOption('--limit <n>', 'how many', { max: 1_000_000, fallback: 50 }))
		.option('--all', 'all there are')
		.option('--cursor <cursor>', 'go on where an earlier reading ended')
		.addHelpText('after', examples)
		.action(async (options: AuditOptions) => {
			const { limit, all = false, since, until } = options
			let left = all ? Infinity : limit
			let cursor = options.cursor ?? null
			do {
				const query = new URLSearchParams({
					...queryOf(options),
					...(since !== undefined && { since: pointInTime(since) }),
					...(until !== undefined && { until: pointInTime(until) }),
					limit: String(Math.min(PAGE, left)),
					...(cursor !== null && { cursor }),
				})
				const page = await api.request<Page>('GET', `/v1/audit?${query.toString()}`)
				for (const event of page.events) {
					out.line(event)
					out.write(`${lineOf(event, out.style)}\n`)
				}
				left -= page.events.length
				cursor = page.next_cursor
			} while (left > 0 && cursor !== null)
			if (cursor !== null) out.note(out.style.dim(`(there are older ones; go on with --cursor ${cursor})`))
		})
}

const units: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `12h` → that long ago; anything else goes to the gateway as it is. */
function pointInTime(text: string): string {
	const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
	return count === undefined ? text : new Date(Date.now() - Number(count) * (units[unit] ?? 0)).toISOString()
}

const examples = `
With --json each line is one event.

Examples:
  svc audit --agent ada --limit 20
  svc audit --since 24h --type security.violation
  svc audit --all --json > events.ndjson
  svc audit --json --type run.failed | jq -r .payload.error`
