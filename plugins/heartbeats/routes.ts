import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { scoped } from '../shared/scopes.ts'
import type { HeartbeatChange, HeartbeatRequest, Heartbeats, HeartbeatSettings } from './contract.ts'
import { changeKeys, requestKeys } from './request.ts'

const iso = Joi.string().isoDate()
const name = agentName
const anId = '0197a4c2-65f4-7265-80aa-e5162738495a'
const id = Joi.string().max(64).required().description('Id of the heartbeat.').example(anId)
const withoutDeliver = Joi.object({
	id: Joi.string().required().example(anId),
	cron: Joi.string().allow(null).required().example('0 9 * * 1-5'),
	timezone: Joi.string().allow(null).required().example('Europe/Berlin'),
	every: Joi.string().allow(null).required().example(null),
	at: iso.allow(null).required().description('When it starts its only run; then it is deleted.'),
	prompt: Joi.string().required().example('Look at the news and tell me what is new.'),
	created_at: iso.required().example('2026-11-02T09:30:00.000Z'),
	next_at: iso
		.allow(null)
		.required()
		.description('When it fires next; null while it is paused.')
		.example('2026-11-03T08:00:00.000Z'),
	paused: Joi.boolean().required(),
	last_at: iso.allow(null).required().description('When it last started a run.'),
}).id('Heartbeat')

export function routes(server: Server, ctx: Context<HeartbeatSettings>, heartbeats: Heartbeats): void {
	const agentOf = (agent: string) => ctx.use('agents').get(agent)
	const fields = ctx.use('runs').deliverFields
	const heartbeat = withoutDeliver.keys({ deliver: fields.shown })
	server.route<{ Params: { name: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/heartbeats',
		options: {
			id: 'listHeartbeats',
			description: 'List the heartbeats of an agent, oldest first',
			tags: ['api', 'heartbeats'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object({ name }) },
			response: { status: { 200: Joi.array().items(heartbeat) } },
		},
		handler: async ({ params }) => heartbeats.list(await agentOf(params.name)),
	})
	server.route<{ Params: { name: string }; Payload: HeartbeatRequest }>({
		method: 'POST',
		path: '/v1/agents/{name}/heartbeats',
		options: {
			id: 'createHeartbeat',
			description: 'Start runs of an agent on a schedule',
			notes: [
				'Give one of `cron`, `every` and `at`. Each beat starts a run in the conversation of the heartbeat; a beat is skipped while the agent is busy.',
				'A beat that was missed while the gateway was down starts one run if it was due less than `heartbeats.missed_grace_s` ago.',
				'With `at` it starts one run, even if the agent is busy or the gateway was down at that time, and is then deleted.',
			],
			tags: ['api', 'heartbeats'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object({ name }),
				payload: Joi.object(requestKeys(fields)).required().prefs({ convert: false }).example({
					cron: '0 9 * * 1-5',
					timezone: 'Europe/Berlin',
					prompt: 'Look at the news and tell me what is new.',
				}),
			},
			response: { status: { 200: heartbeat } },
		},
		handler: async ({ params, payload }) => heartbeats.create(await agentOf(params.name), payload),
	})
	server.route<{ Params: { name: string; id: string }; Payload: HeartbeatChange }>({
		method: 'PATCH',
		path: '/v1/agents/{name}/heartbeats/{id}',
		options: {
			id: 'changeHeartbeat',
			description: 'Change, pause or resume a heartbeat',
			notes:
				'Absent fields stay unchanged. A new `cron`, `every` or `at` replaces the schedule. The interval of a changed or resumed heartbeat starts now; beats during the pause are skipped.',
			tags: ['api', 'heartbeats'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object({ name, id }),
				payload: Joi.object(changeKeys(fields)).min(1).required().prefs({ convert: false }).example({ paused: true }),
			},
			response: { status: { 200: heartbeat } },
		},
		handler: async ({ params, payload }) => heartbeats.change(await agentOf(params.name), params.id, payload),
	})
	server.route<{ Params: { name: string; id: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{name}/heartbeats/{id}',
		options: {
			id: 'deleteHeartbeat',
			description: 'Delete a heartbeat',
			notes: 'Runs that it started continue.',
			tags: ['api', 'heartbeats'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object({ name, id }) },
			response: { status: { 200: Joi.object({ id, status: Joi.valid('deleted').required() }) } },
		},
		handler: async ({ params }) => {
			await heartbeats.remove(await agentOf(params.name), params.id)
			return { id: params.id, status: 'deleted' }
		},
	})
}
