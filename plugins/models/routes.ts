import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { scoped } from '../shared/scopes.ts'
import type { Context } from '../../core/plugin.ts'
import type { ModelSettings, Provider } from './contract.ts'
import { dialects } from './dialects.ts'
import type { ServerKind } from './dialects.ts'
import { listModels, tryModel } from './server.ts'
import type { Ask } from './server.ts'

const base_url = Joi.string()
	.uri({ scheme: ['http', 'https'] })
	.max(2048)
const provider = Joi.object({
	name: Joi.string().required().example('local'),
	kind: Joi.string().required().example('openai'),
	base_url: Joi.string().allow(null).required().example('http://127.0.0.1:11434/v1'),
	model: Joi.string().allow(null).required().description('For agents that name none.').example('qwen3'),
	key: Joi.valid('none', 'setting', 'vault').required().description('Where its key is kept.').example('vault'),
	key_secret: Joi.string().description('The name or id of the secret, if the vault keeps the key.'),
	is_default: Joi.boolean().required().example(true),
	fallback: Joi.boolean().required().description('Whether it is used when another provider fails.').example(false),
}).id('Provider')

const check = Joi.object({
	kind: Joi.valid(...Object.keys(dialects))
		.required()
		.example('openai'),
	base_url: base_url
		.required()
		.description('The address of the API, with its version.')
		.example('http://127.0.0.1:11434/v1'),
	api_key: Joi.alternatives(
		Joi.object({ secret: Joi.string().max(256).required() }),
		Joi.object({ env: Joi.string().max(256).required() }),
		Joi.object({ value: Joi.string().max(4096).required() }),
	).description(
		"A secret of the vault, a variable of the gateway's environment, or the key itself, which is not stored.",
	),
	model: Joi.string().max(256).description('The model to call once. Absent: only lists the models.').example('qwen3'),
})

const result = Joi.object({
	state: Joi.valid('ok', 'unreachable', 'denied', 'refused')
		.required()
		.description(
			'`unreachable`: no answer, or not one of a model server; `denied`: it requires another key; `refused`: it accepts the key and refuses the call.',
		),
	message: Joi.string().allow(null).required().description('What is wrong, for people.').example(null),
	models: Joi.array()
		.items(Joi.string())
		.required()
		.description('The models that the server lists, at most 2,000.')
		.example(['qwen3']),
	answers: Joi.boolean().required().description('Whether the model answered.').example(true),
	duration_ms: Joi.number().integer().required().description('Duration of the model call.').example(412),
}).id('ProviderCheck')

interface CheckRequest {
	kind: ServerKind
	base_url: string
	api_key?: { secret: string } | { env: string } | { value: string }
	model?: string
}

export function routes(server: Server, ctx: Context<ModelSettings>): void {
	const { config } = ctx
	server.route({
		method: 'GET',
		path: '/v1/providers',
		options: {
			id: 'listProviders',
			description: 'List the providers of models',
			notes: 'The keys are never returned.',
			tags: ['api', 'models'],
			auth: scoped('agents:read'),
			response: { status: { 200: Joi.array().items(provider) } },
		},
		handler: () => Object.entries(config.providers).map(([name, one]) => viewOf(name, one, config)),
	})
	// Without `auth`, so only callers with the scope `*`: the route sends a key to any address, like setting up a provider.
	server.route<{ Payload: CheckRequest }>({
		method: 'POST',
		path: '/v1/providers/check',
		options: {
			id: 'checkProvider',
			description: 'Test a model server',
			notes:
				'Lists its models, for at most 10 s, and then calls the model, for at most 60 s. Nothing is set up or stored.',
			tags: ['api', 'models'],
			plugins: { auth: { changes: false } },
			validate: { payload: check },
			response: { status: { 200: result } },
		},
		handler: async ({ payload: { kind, base_url: address, api_key, model } }) => {
			const target = { kind, base_url: address.replace(/\/+$/, ''), api_key: await keyOf(ctx, api_key) }
			const ask = await asking(ctx.signal)
			const listed = await listModels(target, ask)
			const models = listed.state === 'ok' ? (listed.models ?? []) : []
			const began = performance.now()
			// A server that refuses to list its models may still answer.
			const tried =
				model === undefined || listed.state === 'unreachable' ? undefined : await tryModel(target, model, ask)
			const duration_ms = Math.round(performance.now() - began)
			const verdict = tried ?? listed
			return {
				state: verdict.state,
				message: verdict.state === 'ok' ? null : verdict.message,
				models,
				answers: tried?.state === 'ok',
				duration_ms: tried ? duration_ms : 0,
			}
		},
	})
}

async function asking(signal: AbortSignal): Promise<Ask> {
	const { askingUntil } = await import('../../core/cli/doctor/asking.ts')
	return (url, { timeout_ms, ...request }) => askingUntil(signal, timeout_ms)(url, request)
}

async function keyOf(
	{ use, env, fault }: Context<ModelSettings>,
	key: CheckRequest['api_key'],
): Promise<string | undefined> {
	if (key === undefined) return undefined
	if ('value' in key) return key.value
	if ('secret' in key) return use('vault').open(key.secret)
	const value = env[key.env]
	if (value !== undefined && value !== '') return value
	throw fault('invalid_request', `the gateway was started without the variable ${key.env}`)
}

function viewOf(name: string, { kind, base_url: address, model, api_key }: Provider, settings: ModelSettings): object {
	return {
		name,
		kind,
		base_url: address ?? null,
		model: model ?? null,
		key: api_key === undefined ? 'none' : typeof api_key === 'string' ? 'setting' : 'vault',
		...(typeof api_key === 'object' && { key_secret: api_key.secret }),
		is_default: name === settings.default_provider,
		fallback: settings.fallback.includes(name),
	}
}
