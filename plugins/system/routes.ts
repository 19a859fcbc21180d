import type { Request, Server } from '@hapi/hapi'
import type { ArraySchema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import { BUILT_IN } from '../../core/host/loader.ts'
import { scoped } from '../shared/scopes.ts'
import type { Context } from '../../core/plugin.ts'
import type { Health, PluginStatus } from '../../core/status.ts'
import type {} from '../auth/contract.ts'
import { healthOf, isReady, linesOf } from './health.ts'

const health = Joi.object({
	status: Joi.valid('ok', 'degraded', 'migrating', 'starting', 'draining')
		.required()
		.description(
			'degraded: the gateway accepts requests, but something needs attention. migrating: it is upgrading its home and does not accept requests yet; the check `gateway` shows the progress.',
		),
	version: Joi.string().required(),
	generation: Joi.number().integer().required().description('Number of reloads that changed something.'),
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

const texts = (description: string): ArraySchema => Joi.array().items(Joi.string()).required().description(description)
const holdings = Joi.object({
	routes: texts('On both addresses.'),
	tools: texts('Tools that it gives to every agent.'),
	events: texts('Types of events that it handles.'),
	extends: texts('Extension points of other plugins that it extends.'),
	timers: Joi.number().integer().required(),
	resources: texts('Other resources that it releases when it stops, by the labels in its code.'),
})

const plugin = Joi.object({
	name: Joi.string().required(),
	version: Joi.string().allow(null).required(),
	state: Joi.valid('running', 'failing', 'failed')
		.required()
		.description('`failing`: it runs, but has thrown an uncaught error. `failed`: it does not run.'),
	last_error: Joi.string()
		.allow(null)
		.required()
		.description(
			'Why it does not run, or does not run with its current files; an uncaught error; or a problem that it reports.',
		),
	generation: Joi.number()
		.integer()
		.allow(null)
		.required()
		.description('The generation in which the current instance became active; null if none is active.'),
	built_in: Joi.boolean().required().description('Whether it is part of the gateway.'),
	contract: Joi.string()
		.allow(null)
		.required()
		.description('The version of the plugin contract that it declares; null if it declares none.'),
	since: Joi.string().isoDate().allow(null).required().description('When it was started; null if it does not run.'),
	holds: holdings
		.allow(null)
		.required()
		.description('The resources that it holds, and releases when it stops; null if it does not run.'),
})
	.id('Plugin')
	.example({
		name: 'tides',
		version: '1.2.0',
		state: 'running',
		last_error: null,
		generation: 3,
		built_in: false,
		contract: '0.2',
		since: '2030-01-31T12:00:00.123Z',
		holds: {
			routes: ['GET /v1/tides'],
			tools: ['tides.today'],
			events: ['run.completed'],
			extends: [],
			timers: 1,
			resources: ['the connection to the tide gauge'],
		},
	})

const plain = { openapi: { produces: 'text/plain' } }

export function routes(server: Server, ctx: Context): void {
	const { gateway } = ctx
	const view = ({ source, ...status }: PluginStatus): object => ({
		...status,
		built_in: source === BUILT_IN,
		holds: gateway.holdings(status.name),
	})
	const healthFor = async ({ raw }: Pick<Request, 'raw'>): Promise<Health> =>
		healthOf(gateway, await ctx.use('auth').permits(raw.req, ['agents:read']))

	server.route({
		method: 'GET',
		path: '/healthz',
		options: {
			id: 'isAlive',
			description: 'Check that the process is alive',
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
			description: 'Check that the gateway accepts requests',
			notes:
				'503 while the gateway upgrades its home (`migrating`; verbose: percent and remaining time), starts or drains. A gateway that refuses writes or a new configuration is degraded, and still ready. Only local callers in loopback mode and tokens with `agents:read` see why a check fails.',
			tags: ['api', 'gateway'],
			auth: false,
			plugins: plain,
			validate: {
				query: Joi.object({
					verbose: Joi.string().allow('').description('One line for each check: [+] if it passes, [-] if it fails.'),
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
			description: 'Read the health of the gateway',
			notes:
				'503 while the gateway upgrades its home, starts or drains. The same callers as for GET /readyz see why a check fails.',
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
		handler: () => gateway.plugins().map(view),
	})
	server.route<{ Params: { name: string } }>({
		method: 'POST',
		path: '/v1/plugins/{name}/reload',
		options: {
			id: 'reloadPlugin',
			description: 'Restart a plugin',
			notes:
				'Uses its current files and configuration. Responds once it has started, or has failed to start. Requests and runs in progress continue. If a third-party plugin does not start, its previous instance, if any, keeps running.',
			tags: ['api', 'gateway'],
			plugins: { openapi: { errors: [404, 409] } },
			validate: {
				params: Joi.object({
					name: Joi.string().max(64).required().description('Name of the plugin.').example('tides'),
				}),
			},
			response: { status: { 200: plugin } },
		},
		handler: async ({ params: { name } }) => {
			await gateway.reload(name)
			const found = gateway.plugins().find((plugin) => plugin.name === name)
			if (!found) throw new Fault('not_found', `the plugin "${name}" has just been switched off`)
			return view(found)
		},
	})
}
