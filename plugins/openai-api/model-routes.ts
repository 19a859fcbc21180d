import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { scoped } from '../shared/scopes.ts'
import { agentOf, modelOf } from './agents.ts'
import { commonOptions } from './route-options.ts'

const model = Joi.object({
	id: Joi.string().required().example('svc/ada'),
	object: Joi.valid('model').required(),
	created: Joi.number().integer().required().description('Seconds since 1970.').example(1_795_000_000),
	owned_by: Joi.valid('svc').required(),
}).id('OpenAiModel')

export function modelRoutes(server: Server, ctx: Pick<Context, 'use'>): void {
	server.route({
		method: 'GET',
		path: '/v1/models',
		options: {
			id: 'listModels',
			description: "List the agents as models of OpenAI's API",
			...commonOptions,
			auth: scoped('agents:read'),
			response: {
				status: {
					200: Joi.object({ object: Joi.valid('list').required(), data: Joi.array().items(model).required() }),
				},
			},
		},
		handler: async ({ auth }) => {
			const agents = ctx.use('agents').visibleTo(auth.credentials).list()
			return { object: 'list', data: await Array.fromAsync(agents, modelOf) }
		},
	})
	server.route<{ Params: { model: string } }>({
		method: 'GET',
		path: '/v1/models/{model*}',
		options: {
			id: 'getModel',
			description: "Read an agent as a model of OpenAI's API",
			...commonOptions,
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({
					model: Joi.string().max(128).required().description('`svc/<agent>`, or just the name.').example('svc/ada'),
				}),
			},
			response: { status: { 200: model } },
		},
		handler: async (request) => modelOf(await agentOf(ctx, request.auth.credentials, request.params.model)),
	})
}
