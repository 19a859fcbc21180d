import type { Command } from 'commander'
import type { EventEnvelope } from '../store/ports.ts'
import type { Style } from './contract.ts'

export interface FilterOptions {
	agent?: string
	run?: string
	type?: string
}

/** The options that `events` and `audit` share. */
export function withFilter(command: Command): Command {
	return command
		.option('--agent <agent>', 'of this agent')
		.option('--run <run>', 'of this run')
		.option('--type <types>', 'of this type, family or list of them, such as run.*,message.assistant')
}

/** As fields of a query. */
export function queryOf({ agent, run, type }: FilterOptions): Record<string, string> {
	return {
		...(agent !== undefined && { agent_id: agent }),
		...(run !== undefined && { run_id: run }),
		...(type !== undefined && { event_type: type }),
	}
}

/** An event as one line. */
export function lineOf({ timestamp, agent_id, run_id, event_type, payload }: EventEnvelope, style: Style): string {
	const about = [agent_id, run_id].filter((one) => one !== null).join(' ')
	const kind = bad.test(event_type) ? style.bad(style.plain(event_type)) : style.bold(style.plain(event_type))
	const rest = JSON.stringify(payload)
	const shown = rest === '{}' ? '' : rest.length > PAYLOAD_LIMIT ? `${rest.slice(0, PAYLOAD_LIMIT)}…` : rest
	return `${style.dim(timestamp.slice(11, 23))} ${kind} ${style.plain(about)} ${style.dim(style.plain(shown))}`.trimEnd()
}

/** Characters of a payload that a line shows; --json has all. */
const PAYLOAD_LIMIT = 300
const bad = /\.(failed|rejected|error|violation|denied)$/
