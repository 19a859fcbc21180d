import { CliError } from '../contract.ts'
import type { Register } from '../contract.ts'
import { lineOf, queryOf, withFilter } from '../event-filter.ts'
import type { FilterOptions } from '../event-filter.ts'
import { countOption } from '../options.ts'

export const register: Register = (program, cli) => {
	const { api, out } = cli
	const events = program.command('events').description('Follow events as they happen').addHelpText('after', examples)

	withFilter(events.command('tail'))
		.description('Show events from now on, until Ctrl-C; a lost connection is made again without a gap')
		.option('--since <cursor>', 'begin behind this position')
		.addOption(countOption('--count <n>', 'end after so many events', { max: 1_000_000 }))
		.option('--cursors', 'with --json: each line as {cursor, event}')
		.action(async (options: FilterOptions & { since?: string; count?: number; cursors?: boolean }) => {
			const { count = Infinity } = options
			let seen = 0
			let lost = false
			const stream = api.events(queryOf(options), {
				...(options.since !== undefined && { after: options.since }),
				opened: () => {
					if (!out.json && seen === 0 && !lost) out.note(out.style.dim(`(following ${api.url}; Ctrl-C ends)`))
					lost = false
				},
				lost: () => {
					if (!lost) out.note(out.style.dim('(the connection is lost; trying again)'))
					lost = true
				},
			})
			for await (const { cursor, event } of stream) {
				out.line(options.cursors ? { cursor, event } : event)
				out.write(`${lineOf(event, out.style)}\n`)
				if (++seen >= count) break
			}
			if (cli.signal.aborted) throw new CliError('interrupted', '')
		})
}

const examples = `
Examples:
  svc events tail
  svc events tail --agent ada --type 'run.*,message.assistant'
  svc events tail --json --type security.violation | while read -r event; do notify "$event"; done
  svc events tail --json --cursors --count 100 > page; svc events tail --since "$(tail -n 1 page | jq -r .cursor)"`
