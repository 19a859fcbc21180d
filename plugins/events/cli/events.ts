import type { EventEnvelope } from '../../../core/store/ports.ts'
import { CliError } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { pages } from '../../../core/cli/pages.ts'
import { lineOf, queryOf, filterOptions, withRunId } from './event-filter.ts'
import type { EventPage, FilterOptions } from './event-filter.ts'
import { pointInTime } from '../../../core/cli/option-values.ts'

export default {
	examples: `
Examples:
  svc events tail
  svc events tail -n 20
  svc events tail --since 10m --agent ada --type 'run.*,message.assistant'
  svc events tail --json --type security.violation | while read -r event; do notify "$event"; done
  svc events tail --json --cursors --count 100 > page; svc events tail --since "$(tail -n 1 page | jq -r .cursor)"`,
	commands: {
		tail: {
			description: 'Show events from now on, until Ctrl-C; reconnects without a gap',
			options: {
				...filterOptions,
				'-n, --lines <n>': { about: 'begin with this many past events', max: 10_000 },
				'--since <time>': 'begin this long ago, such as 10m, 2h or 1d, at an ISO 8601 time, or after a cursor',
				'--stream': 'also show the pieces of answers (model.stream), as a --type with model.stream or model.* does',
				'--count <n>': { about: 'exit after this many events', max: 1_000_000 },
				'--cursors': 'with --json: each line as {cursor, event}',
			},
			async run(cli, given: TailOptions) {
				const options = await withRunId(cli, given)
				const { count = Infinity, lines, since } = options
				const isTime = since !== undefined && /^\d{1,9}[smhd]$|^\d{4}-\d\d-\d\d/.test(since)
				const showsModelStream = options.stream === true || /(^|,)model\.(\*|stream)/.test(options.type ?? '')
				/** Ids of events from before the stream opened, which it may repeat. */
				const shown = new Set<string>()
				let seen = 0
				let lost = false
				const opened = Promise.withResolvers<void>()
				const over = new AbortController()
				const show = (event: EventEnvelope, cursor?: string): void => {
					if (seen >= count || (event.event_type === 'model.stream' && !showsModelStream)) return
					cli.out.line(options.cursors ? { cursor: cursor ?? null, event } : event)
					cli.out.write(`${lineOf(event, cli.out.style, options)}\n`)
					seen++
				}
				const stream = cli.api.events(queryOf(options), {
					signal: over.signal,
					...(since !== undefined && !isTime && { after: since }),
					opened: () => {
						if (!cli.out.json && seen === 0 && !lost)
							cli.out.note(cli.out.style.dim(`(following ${cli.api.url}; press Ctrl-C to exit)`))
						lost = false
						opened.resolve()
					},
					lost: () => {
						if (!lost) cli.out.note(cli.out.style.dim('(the connection is lost; reconnecting)'))
						lost = true
					},
				})
				const events = stream[Symbol.asyncIterator]()
				const first = events.next()
				if (lines !== undefined || isTime) {
					await Promise.race([opened.promise, first])
					const before = await past(cli, queryOf(options), lines ?? PAST_LIMIT, isTime ? pointInTime(since) : undefined)
					for (const event of before) {
						shown.add(event.event_id)
						show(event)
					}
				}
				if (seen >= count) over.abort()
				for (let next = await first; next.done !== true; next = await events.next()) {
					const { cursor, event } = next.value
					if (!shown.delete(event.event_id)) show(event, cursor)
					if (seen >= count) over.abort()
				}
				if (cli.signal.aborted) throw new CliError('interrupted', '')
			},
		},
	},
} satisfies Command

/** The last `limit` events, oldest first. */
async function past(cli: Cli, query: Record<string, string>, limit: number, since?: string): Promise<EventEnvelope[]> {
	const from = { ...query, ...(since !== undefined && { since }) }
	const found = await Array.fromAsync(pages<EventPage>(cli, '/v1/audit', 'events', limit, from))
	if (found.at(-1)?.next_cursor && since !== undefined)
		cli.out.note(cli.out.style.dim(`(older events are omitted; svc audit --since shows them)`))
	return found.flatMap(({ events }) => events).toReversed()
}

interface TailOptions extends FilterOptions {
	lines?: number
	since?: string
	stream?: boolean
	count?: number
	cursors?: boolean
}

/** Maximum number of past events with --since, if --lines is not given. */
const PAST_LIMIT = 10_000
