import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault, isFault } from '../../core/errors.ts'
import { defined } from '../../core/util/defined.ts'
import type { Context, GenerationView } from '../../core/plugin.ts'
import { reaches } from '../shared/agent-limit.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { scoped } from '../shared/scopes.ts'
import type {} from '../auth/contract.ts'
import type { EventSettings, Events } from './contract.ts'
import { cursor, event, filterKeys, frame, toFilter } from './query.ts'
import type { FilterQuery } from './query.ts'

const page = Joi.object({
	events: Joi.array().items(event).required().description('Newest first.'),
	next_cursor: Joi.string()
		.allow(null)
		.required()
		.description(
			'For the next page; null if there is nothing older. A page may have fewer events than `limit`, and a next page.',
		)
		.example('1038'),
}).id('AuditPage')

/** The subject of an identity provider may have 255 characters. */
const ACTOR_LIMIT = 256

interface StreamQuery extends FilterQuery {
	last_event_id?: string
}

interface AuditQuery extends FilterQuery {
	since?: string
	until?: string
	limit: number
	cursor?: string
	actor?: string
}

export function routes(
	server: Server,
	ctx: Context<EventSettings>,
	events: Events,
	{ events: types }: GenerationView,
): void {
	const typeList = [...types].map(([type, { description }]) => `- \`${type}\`: ${description}`).join('\n')
	server.route<{ Query: StreamQuery }>({
		method: 'GET',
		path: '/v1/events/stream',
		options: {
			id: 'streamEvents',
			description: 'Follow events as they happen',
			notes: [
				'Server-Sent Events: each `data:` line is one event as JSON, each `id:` line the position after it. To resume, send such a position, or an `event_id`, in the header `Last-Event-ID` (or as `last_event_id`): the stream begins with the events since then. If the position is unknown, the stream begins with the comment `: unknown position`, and the next event. The response header `X-Last-Event-ID` is the position at which the stream begins. The last event of a run is `run.completed`, `run.failed` or `run.stopped`: a stopped run neither completes nor fails. `model.stream` is live only. A slow client gets its events from the log. The stream of a client that reads nothing for too long is closed; the client can resume with `Last-Event-ID`.',
				`Types:\n${typeList}`,
			],
			tags: ['api', 'events'],
			auth: scoped('events:read'),
			plugins: {
				auth: { agents: 'checked' },
				openapi: { answers: { 200: { 'text/event-stream': Joi.string().example(frame) } }, errors: [503] },
			},
			validate: {
				headers: Joi.object({
					'last-event-id': cursor
						.allow('')
						.description('Resume after this position or `event_id`; browsers send it automatically.'),
				}).unknown(),
				query: Joi.object({
					...filterKeys,
					last_event_id: cursor.description(
						'Resume after this position or `event_id`. The header Last-Event-ID takes precedence.',
					),
				}),
			},
		},
		handler: async (request, h) => {
			if (request.method === 'head') return h.response('').code(200).type('text/event-stream')
			const { last_event_id, ...filter } = request.query
			await events.stream({
				response: request.raw.res,
				credentials: request.auth.credentials,
				filter: toFilter(filter, request.auth.credentials),
				after: headerOf(request.raw.req.headers['last-event-id']) ?? last_event_id ?? null,
			})
			return h.abandon
		},
	})

	server.route<{ Query: AuditQuery }>({
		method: 'GET',
		path: '/v1/audit',
		options: {
			id: 'listEvents',
			description: 'Read past events',
			notes: `Newest first; events are kept for ${ctx.config.retention_days} days. The types are those of GET /v1/events/stream, except \`model.stream\`.`,
			tags: ['api', 'events'],
			auth: scoped('events:read'),
			plugins: { auth: { agents: 'checked' } },
			validate: {
				query: Joi.object({
					...filterKeys,
					since: Joi.string().isoDate().description('Events at or after this time, ISO 8601.'),
					until: Joi.string().isoDate().description('Events before this time, ISO 8601.'),
					actor: Joi.string()
						.max(ACTOR_LIMIT)
						.description(
							'Events that this actor caused: the `id` of `payload.actor`, such as the id of a token, or `local` or `gateway`.',
						)
						.example('local'),
					limit: Joi.number().integer().min(1).max(500).default(50).description('Events of one page.'),
					cursor: cursor.description('`next_cursor` of the previous page.'),
				}),
			},
			response: { status: { 200: page } },
		},
		handler: async (request) => {
			const { since, until, actor, limit, cursor: from = null, ...filter } = request.query
			if (since !== undefined && until !== undefined && since >= until)
				throw new Fault('invalid_request', 'until must be later than since', {
					errors: [{ path: 'until', message: 'must be later than since' }],
				})
			const { credentials } = request.auth
			if (!(await isVisible(ctx, filter, credentials))) return { events: [], next_cursor: null }
			const read = events.audit({
				filter: { ...toFilter(filter, credentials), ...defined({ since, until, actor }) },
				cursor: from,
				limit,
			})
			const page = await read.catch((error: unknown) => {
				if (!isFault(error, 'invalid_request')) throw error
				throw invalidField('cursor', `${error.message}; leave it out to begin with the newest events`, { cause: error })
			})
			const clearance = ctx.redactor.clearanceOf(credentials.scope)
			return { ...page, events: page.events.map((event) => clearance.event(event)) }
		},
	})
}

/**
 * Whether the caller may know of the agent or run of the filter. Without this check, a page for a hidden agent or run could have
 * a cursor, which a page for one that does not exist never has.
 */
async function isVisible(
	{ events }: Pick<Context, 'events'>,
	{ agent_id, run_id }: FilterQuery,
	caller: AgentLimit,
): Promise<boolean> {
	if (!caller.agents) return true
	if (agent_id !== undefined && !reaches(caller, agent_id)) return false
	if (run_id === undefined) return true
	const [first] = (await events.read({ run_id }, null, 1)).entries
	const owner = first?.event.agent_id
	return typeof owner === 'string' && reaches(caller, owner)
}

/** A browser without a position may send an empty header. */
function headerOf(value: string | string[] | undefined): string | undefined {
	return typeof value === 'string' && value !== '' ? value : undefined
}
