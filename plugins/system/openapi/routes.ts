import { hash } from 'node:crypto'
import type { Server } from '@hapi/hapi'
import { Joi } from '../../../core/util/lazy-joi.ts'
import { once } from '../../shared/once.ts'
import type { Context, GenerationView } from '../../../core/plugin.ts'
import { encoded } from '../../shared/encoded.ts'
import type { Source } from '../../shared/encoded.ts'
import type { Document } from './document.ts'

const anyDocument = Joi.object({ openapi: Joi.string().required() }).unknown().example({ openapi: '3.1.0' })
const notes = 'OpenAPI 3.1, generated from the routes, including those of third-party plugins.'
const unchanged = { 304: {} }

/** Describes the routes of all servers of this generation. */
export function documentRoutes(server: Server, generation: GenerationView, ctx: Context): void {
	const { gateway } = ctx
	// The routes of a generation never change once it serves.
	const json = once(async () => {
		const { documentOf } = await import('./document.ts')
		const { version } = gateway
		return JSON.stringify(await documentOf({ version, generation, legacyUrl: gateway.url('legacy') }))
	})
	const answerJson = once(async () => encoded(sourceOf(await json(), 'application/json')))
	const answerYaml = once(async () => {
		const { yamlOf } = await import('./document.ts')
		const yaml = await yamlOf(JSON.parse(await json()) as Document)
		return encoded(sourceOf(yaml, 'application/yaml'))
	})

	server.route({
		method: 'GET',
		path: '/v1/openapi.json',
		options: {
			id: 'getOpenApiJson',
			description: 'This description of the API',
			notes,
			tags: ['api', 'gateway'],
			auth: false,
			plugins: { openapi: { answers: { 200: { 'application/json': anyDocument }, ...unchanged } } },
		},
		handler: async (request, h) => (await answerJson())(request, h),
	})
	server.route({
		method: 'GET',
		path: '/v1/openapi.yaml',
		options: {
			id: 'getOpenApiYaml',
			description: 'This description of the API, as YAML',
			notes,
			tags: ['api', 'gateway'],
			auth: false,
			plugins: {
				openapi: { answers: { 200: { 'application/yaml': Joi.string().example('openapi: 3.1.0\n') }, ...unchanged } },
			},
		},
		handler: async (request, h) => (await answerYaml())(request, h),
	})
}

function sourceOf(text: string, type: string): Source {
	const bytes = Buffer.from(text)
	return { bytes, type, etag: hash('sha256', bytes, 'base64url').slice(0, 22) }
}
