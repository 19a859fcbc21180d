import { createHash } from 'node:crypto'
import type { ResponseObject, ResponseToolkit, Server } from '@hapi/hapi'
import Joi from 'joi'
import type { Context } from '../../../core/plugin.ts'
import { documentOf } from './document.ts'
import type { Document } from './document.ts'
import { yamlOf } from './yaml.ts'

interface Text {
	bytes: Buffer
	etag: string
}

const anyDocument = Joi.object({ openapi: Joi.string().required() }).unknown().example({ openapi: '3.1.0' })
const notes = "OpenAPI 3.1, made from the routes themselves, third parties' plugins included."
const unchanged = { 304: {} }

/** `legacy`: the server of the other address in the same generation; null where there is none. */
export function documentRoutes(server: Server, legacy: Server | null, ctx: Context): void {
	const { gateway } = ctx
	// Routes are complete once a generation serves, and never change afterwards.
	const json = once(async () => {
		const { version } = gateway
		return textOf(JSON.stringify(await documentOf({ version, main: server, legacy, legacyUrl: gateway.url('legacy') })))
	})
	const yaml = once(async () => textOf(await yamlOf(JSON.parse(String((await json()).bytes)) as Document)))

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
		handler: async (_request, h) => answer(h, await json(), 'application/json'),
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
		handler: async (_request, h) => answer(h, await yaml(), 'application/yaml'),
	})
}

function answer(h: ResponseToolkit, { bytes, etag }: Text, type: string): ResponseObject {
	return h.response(bytes).type(type).etag(etag).header('cache-control', 'no-cache')
}

function textOf(text: string): Text {
	const bytes = Buffer.from(text)
	return { bytes, etag: createHash('sha256').update(bytes).digest('base64url').slice(0, 22) }
}

/** Makes it at the first call, and again after a failure. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
	let made: Promise<T> | undefined
	return async () => {
		try {
			return await (made ??= make())
		} catch (error) {
			made = undefined
			throw error
		}
	}
}
