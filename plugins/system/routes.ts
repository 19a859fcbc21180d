import type { Request, Server } from '@hapi/hapi'
import Joi from 'joi'
import { scoped } from '../../core/http/routes.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../auth/contract.ts'
import type { Health } from './contract.ts'
import { healthOf, isReady, linesOf } from './health.ts'

const health = Joi.object({
	status: Joi.valid('ok', 'degraded', 'migrating', 'starting', 'draining')
		.required()
		.description(
			'degraded: it serves, and something needs a look. migrating: it upgrades its home and does not serve yet; the check `gateway` says how far it is.',
		),
	version: Joi.string().required(),
	generation: Joi.number().integer().required().description('Counts the reloads that changed something.'),
	uptime_s: Joi.number().integer().required().description('Seconds since the start.'),
	checks: Joi.array()
		.items(
			Joi.object({ name: Joi.string().required(), ok: Joi.boolean().required(), message: Joi.string().required() }),
		)
		.required(),
})
	.id('Health')
	.example({
		status: 'ok',
		version: '0.1.0',
		generation: 1,
		uptime_s: 86_400,
		checks: [
			{ name: 'gateway', ok: true, message: 'ready' },
			{ name: 'store', ok: true, message: 'ok' },
			{ name: 'config', ok: true, message: 'in force' },
			{ name: 'plugins', ok: true, message: '21 running' },
		],
	})

const plugin = Joi.object({
	name: Joi.string().required(),
	version: Joi.string().allow(null).required(),
	state: Joi.valid('running', 'failing', 'failed')
		.required()
		.description('`failing`: it runs, but did not catch an error; `failed`: it does not run.'),
	last_error: Joi.string()
		.allow(null)
		.required()
		.description(
			'Why it does not run, or not as its files now are; the error that it did not catch; or what it says is wrong with it.',
		),
	generation: Joi.number()
		.integer()
		.allow(null)
		.required()
		.description('The generation in which it began to serve as it is; null where it does not.'),
})
	.id('Plugin')
	.example({ name: 'runs', version: '0.1.0', state: 'running', last_error: null, generation: 1 })

const plain = { openapi: { produces: 'text/plain' } }

export function routes(server: Server, ctx: Context): void {
	const { gateway } = ctx
	const healthFor = async ({ raw }: Pick<Request, 'raw'>): Promise<Health> =>
		healthOf(gateway, await ctx.use('auth').permits(raw.req, ['agents:read']))

	server.route({
		method: 'GET',
		path: '/healthz',
		options: {
			id: 'isAlive',
			description: 'Is the process alive?',
			tags: ['api', 'gateway'],
			auth: false,
			plugins: plain,
			response: { status: { 200: Joi.valid('ok') } },
		},
		handler: (_request, h) => h.response('ok').type('text/plain'),
	})
	server.route<{ Query: { verbose?: string } }>({
		method: 'GET',
		path: '/readyz',
		options: {
			id: 'isReady',
			description: 'Does the gateway take requests?',
			notes:
				'503 while it upgrades its home (`migrating`; verbose: percent and remaining time), starts or drains. One that refuses writes or a new configuration is degraded, and still ready. Needs no token; why a check fails shows to local callers in loopback mode and to tokens with `agents:read`.',
			tags: ['api', 'gateway'],
			auth: false,
			plugins: plain,
			validate: {
				query: Joi.object({
					verbose: Joi.string().allow('').description('One line for each check: [+] where it is well, [-] where not.'),
				}).unknown(),
			},
			response: { status: { 200: Joi.string().example('ok'), 503: Joi.string().example('draining') } },
		},
		handler: async (request, h) => {
			const now = await healthFor(request)
			const text = request.query.verbose === undefined ? now.status : linesOf(now)
			return h
				.response(text)
				.type('text/plain')
				.code(isReady(now) ? 200 : 503)
		},
	})
	server.route({
		method: 'GET',
		path: '/v1/health',
		options: {
			id: 'getHealth',
			description: 'How the gateway is',
			notes:
				'503 while it upgrades its home, starts or drains. Why a check fails shows to the same callers as on GET /readyz.',
			tags: ['api', 'gateway'],
			auth: false,
			response: { status: { 200: health, 503: health } },
		},
		handler: async (request, h) => {
			const now = await healthFor(request)
			return h.response(now).code(isReady(now) ? 200 : 503)
		},
	})
	server.route({
		method: 'GET',
		path: '/v1/plugins',
		options: {
			id: 'listPlugins',
			description: 'List plugins',
			tags: ['api', 'gateway'],
			auth: scoped('agents:read'),
			response: { status: { 200: Joi.array().items(plugin) } },
		},
		handler: () =>
			gateway
				.plugins()
				.map(({ name, version, state, last_error, generation }) => ({ name, version, state, last_error, generation })),
	})
}
