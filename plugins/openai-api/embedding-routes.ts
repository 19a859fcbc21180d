import { hash } from 'node:crypto'
import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import { scoped } from '../shared/scopes.ts'
import type { Context } from '../../core/plugin.ts'
import { agentOf } from './agents.ts'
import type { OpenAiApi, OpenAiSettings } from './contract.ts'
import { failure } from './errors.ts'
import { model, refused } from './fields.ts'

const TEXTS_LIMIT = 2_048
/** In characters. Embedders truncate longer texts. */
const TEXT_LIMIT = 8_000
/** An estimate, for the usage. */
const CHARACTERS_PER_TOKEN = 4

interface EmbeddingRequest {
	model: string
	input: string | string[]
	encoding_format?: 'float' | 'base64'
}

const text = Joi.string()
	.min(1)
	.max(TEXT_LIMIT)
	.messages({ 'string.base': '{#label} must be text; lists of tokens are not supported' })
const notTexts =
	'{#label} must be text, or a list of texts, each of 1 to 8,000 characters; lists of tokens are not supported'

const payload = Joi.object({
	model: model.required(),
	input: Joi.alternatives(text, Joi.array().items(text).min(1).max(TEXTS_LIMIT))
		.match('any')
		.messages({ 'alternatives.types': notTexts, 'alternatives.match': notTexts })
		.required()
		.description('One text, or several; each at most 8,000 characters.'),
	encoding_format: Joi.valid('float', 'base64').description('Default `float`.'),
	dimensions: refused('is not supported: the embedder determines the number of dimensions'),
	user: Joi.string().max(512).allow('', null).description('Accepted, without effect.'),
})
	.example({ model: 'svc/ada', input: ['The rent is 950 euros.'] })
	.required()
	.prefs({ convert: false })
	.id('OpenAiEmbeddingRequest')

const tokens = Joi.number().integer().required()
const embeddings = Joi.object({
	object: Joi.valid('list').required(),
	data: Joi.array()
		.items(
			Joi.object({
				object: Joi.valid('embedding').required(),
				index: Joi.number().integer().required(),
				embedding: Joi.alternatives(Joi.array().items(Joi.number()), Joi.string())
					.required()
					.description('A vector of length 1; as base64: 32-bit floats, little-endian.'),
			}),
		)
		.required(),
	model: Joi.string().required(),
	usage: Joi.object({ prompt_tokens: tokens, total_tokens: tokens }).required().description('Estimated.'),
})
	.id('OpenAiEmbeddings')
	.example({
		object: 'list',
		data: [{ object: 'embedding', index: 0, embedding: [0.6, -0.8] }],
		model: 'svc/ada',
		usage: { prompt_tokens: 6, total_tokens: 6 },
	})

export function embeddingRoutes(server: Server, ctx: Context<OpenAiSettings>, service: OpenAiApi): void {
	server.route<{ Payload: EmbeddingRequest }>({
		method: 'POST',
		path: '/v1/embeddings',
		options: {
			id: 'createEmbeddings',
			description: "Create embeddings of texts, with the embedder of an agent's memory",
			notes: 'The header `x-svc-embedder` identifies the embedder: vectors of different embedders cannot be compared.',
			tags: ['api', 'openai'],
			auth: scoped('runs:write'),
			plugins: { auth: { agents: 'checked' }, openapi: { errors: [404, 429, 502, 503], failure } },
			validate: { payload },
			response: { status: { 200: embeddings } },
		},
		handler: async ({ payload: body, auth, raw }) => {
			const memory = ctx.find('memory')
			if (!memory) throw new Fault('unavailable', 'embeddings need the plugin memory, which is switched off')
			const agent = await agentOf(ctx, auth.credentials, body.model)
			const texts = [body.input].flat()
			const client = { open: service.open, credentials: auth.credentials, response: raw.res }
			const { embedder, vectors } = await ctx
				.use('auth')
				.answerWhole(client, (signal) => memory.embed(agent, texts, signal))
			raw.res.setHeader('x-svc-embedder', hash('sha256', embedder).slice(0, 16))
			const used = Math.ceil(texts.join('').length / CHARACTERS_PER_TOKEN)
			return {
				object: 'list',
				data: vectors.map((vector, index) => ({
					object: 'embedding',
					index,
					embedding: body.encoding_format === 'base64' ? base64Of(vector) : [...vector],
				})),
				model: body.model,
				usage: { prompt_tokens: used, total_tokens: used },
			}
		},
	})
}

function base64Of({ buffer, byteOffset, byteLength }: Float32Array): string {
	return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}
