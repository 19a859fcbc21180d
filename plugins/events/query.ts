/** The query fields that the stream and the audit log share, and the schema of an event. */
import type { ObjectSchema, Schema, StringSchema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { defined } from '../../core/util/defined.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import type { LiveFilter } from '../../core/events/event-bus.ts'

export interface FilterQuery {
	agent_id?: string
	run_id?: string
	event_type?: string
}

const TYPES_LIMIT = 64
const name = /^[A-Za-z0-9._-]{1,64}$/
const nameRule = '{#label} must be 1 to 64 of A-Z a-z 0-9 - _ .'
const oneType = String.raw`(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*(?:\.\*)?|\*)`
const types = new RegExp(`^${oneType}(?:,${oneType}){0,${TYPES_LIMIT - 1}}$`)

export const filterKeys: Record<keyof FilterQuery, Schema> = {
	agent_id: Joi.string().pattern(name).message(nameRule).description('Events of this agent.').example('ada'),
	run_id: Joi.string().pattern(name).message(nameRule).description('Events of this run.'),
	event_type: Joi.string()
		.max(4096)
		.pattern(types)
		.message(
			`{#label} must be a type such as message.assistant, a family such as message.*, or at most ${TYPES_LIMIT} of them, separated by commas`,
		)
		.description('A type, a family such as `message.*`, or a list of them, separated by commas.')
		.example('run.*,message.*'),
}

export const cursor: StringSchema = Joi.string().max(128)

const shownEvent = {
	event_id: '0197a4c2-64e3-7154-8f99-d40516273849',
	timestamp: '2026-11-02T09:30:00.000Z',
	agent_id: 'ada',
	run_id: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05',
	sequence: 4,
	event_type: 'message.assistant',
	payload: { content: 'Three books are due today.' },
}
/** Example of the stream. */
export const frame = `: connected\nretry: 3000\ndata: ${JSON.stringify(shownEvent)}\nid: 1042\n\n`

export const event: ObjectSchema = Joi.object({
	event_id: Joi.string().guid().required(),
	timestamp: Joi.string().isoDate().required(),
	agent_id: Joi.string().allow(null).required().description('Null for events of the gateway itself.'),
	run_id: Joi.string().allow(null).required().description('Null for events outside a run.'),
	sequence: Joi.number().integer().min(0).required().description('Increases within a run; 0 outside a run.'),
	event_type: Joi.string().required(),
	payload: Joi.object().unknown().required(),
})
	.id('Event')
	.example(shownEvent)

/** The filter of a query, limited to the caller's agents. `*` in `event_type` is the same as no `event_type`. */
export function toFilter({ agent_id, run_id, event_type }: FilterQuery, { agents }: AgentLimit): LiveFilter {
	const list = [...new Set(event_type?.split(','))]
	return {
		...defined({ agent_id, run_id, agents }),
		...(list.length > 0 && !list.includes('*') && { types: list }),
	}
}
