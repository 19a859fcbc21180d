import type { EventEnvelope } from '../../../core/store/ports.ts'
import type { Cli, Style } from '../../../core/cli/contract.ts'
import { defined } from '../../../core/util/defined.ts'
import { shortId, withShortIds } from '../../../core/cli/short-ids.ts'
import { runIdOf } from '../../../core/cli/run-id.ts'
import { moment } from '../../../core/cli/when.ts'

export interface FilterOptions {
	agent?: string
	run?: string
	type?: string
	full?: boolean
}

/** A page of the audit log, newest first. */
export interface EventPage {
	events: EventEnvelope[]
}

/** The options that `events` and `audit` share. */
export const filterOptions = {
	'--agent <agent>': 'only events of this agent',
	'--run <run>': 'only events of this run; the beginning or end of its id is enough',
	'--type <types>': 'only events of these types or families, such as run.*,message.assistant',
	'--full': 'show complete ids, not only their ends, and who caused an event; --json always does',
} as const

/** The options as fields of a query. */
export function queryOf({ agent, run, type }: FilterOptions): Record<string, string> {
	return defined({ agent_id: agent, run_id: run, event_type: type })
}

/** Replaces the beginning or end of an id in `--run` with the whole id; the other options are unchanged. */
export async function withRunId<T extends FilterOptions>(cli: Cli, options: T): Promise<T> {
	return options.run === undefined ? options : { ...options, run: await runIdOf(cli, options.run) }
}

/** An event as one line. Shows only the ends of ids unless `full`; `dated`: shows the date also for events of today. */
export function lineOf(event: EventEnvelope, style: Style, { full = false, dated = false } = {}): string {
	const { timestamp, agent_id, event_type } = event
	const run_id = event.run_id === null || full ? event.run_id : shortId(event.run_id)
	const about = [agent_id, run_id].filter((id) => id !== null).join(' ')
	const kind = bad.test(event_type) ? style.bad(style.plain(event_type)) : style.bold(style.plain(event_type))
	const { actor: _who, ...what } = event.payload
	const rest = full ? JSON.stringify(event.payload) : withShortIds(JSON.stringify(what))
	const shown = rest === '{}' ? '' : rest.length > PAYLOAD_LIMIT ? `${rest.slice(0, PAYLOAD_LIMIT)}…` : rest
	return `${style.dim(moment(timestamp, { dated }))} ${kind} ${style.plain(about)} ${style.dim(style.plain(shown))}`.trimEnd()
}

/** Characters of a payload in one line; --json shows all. */
const PAYLOAD_LIMIT = 300
const bad = /\.(failed|rejected|error|violation|denied)$/
