import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { findBlob, readPieces } from './read-blob.ts'
import { Fault } from '../../core/errors.ts'
import { agentName } from '../shared/agent-name.ts'
import { partsOf } from '../shared/request-parts.ts'
import { scoped } from '../shared/scopes.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'
import type { Attachments, AttachmentSettings } from './contract.ts'

const name = agentName
const digest = Joi.string()
	.pattern(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hexadecimal digits')
	.required()
	.description('The `blob` of an attachment.')
	.example('sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08')

const uploaded = Joi.object({
	type: Joi.valid('image', 'file', 'audio').required(),
	blob: digest,
	media_type: Joi.string().required().example('image/png'),
	size: Joi.number().integer().required().description('Bytes.').example(2048),
	name: Joi.string(),
}).id('Blob')

const fileBytes = Joi.string().description('The bytes of the file.').example('a,b\n1,2\n')

/** Media types that are sent to browsers. All others become `application/octet-stream`, since browsers could execute them. */
const SAFE_TYPES =
	/^(image\/(png|jpeg|gif|webp|heic|avif)|audio\/[a-z0-9.+-]+|video\/[a-z0-9.+-]+|application\/(pdf|zip|gzip))$/

export function routes(server: Server, ctx: Context<AttachmentSettings>, attachments: Attachments): void {
	server.route<{ Params: { name: string }; Query: { name?: string } }>({
		method: 'POST',
		path: '/v1/agents/{name}/blobs',
		options: {
			id: 'uploadBlob',
			description: 'Upload a file to attach it to runs',
			notes: [
				'The body is the file itself, at most `attachments.max_mib`. The response is an attachment for POST /v1/agents/{name}/runs.',
				'A blob that no run uses within an hour is deleted. Others are deleted with the last conversation that contains them.',
			],
			tags: ['api', 'runs'],
			auth: scoped('runs:write'),
			payload: {
				parse: false,
				output: 'stream',
				// Accepts any declared type, since the type is detected from the bytes.
				override: 'application/octet-stream',
				allow: 'application/octet-stream',
				maxBytes: Number.MAX_SAFE_INTEGER,
			},
			plugins: {
				openapi: {
					consumes: 'application/octet-stream',
					body: fileBytes.required(),
				},
			},
			validate: {
				params: Joi.object({ name }),
				query: Joi.object({ name: Joi.string().max(1000).description('Name of the file.').example('photo.png') }),
			},
			response: { status: { 201: uploaded } },
		},
		handler: async (request, h) => {
			const agent = await ctx.use('agents').get(request.params.name)
			const { 'content-type': media_type } = request.headers as Record<string, string | undefined>
			const about = { media_type, name: request.query.name }
			const { req, res: response } = request.raw
			const client = { open: attachments.uploads, credentials: request.auth.credentials, response }
			const stored = await ctx
				.use('auth')
				.answerWhole(client, (signal) => attachments.upload(agent, bodyOf(req, signal), about))
			return h.response(stored).code(201)
		},
	})
	server.route<{ Params: { name: string; digest: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/blobs/{digest}',
		options: {
			id: 'readBlob',
			description: 'Read the bytes of an attachment',
			notes: 'The response is a download: browsers save it, and never display or execute it.',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			plugins: { openapi: { answers: { 200: { 'application/octet-stream': fileBytes } } } },
			validate: { params: Joi.object({ name, digest }) },
		},
		handler: async (request, h) => {
			const { uid } = await ctx.use('agents').get(request.params.name)
			const found = await findBlob(ctx.store, uid, request.params.digest)
			if (!found)
				throw new Fault('not_found', 'the agent has no such blob; it may have been deleted with its conversation')
			const bytes = Readable.from(readPieces(ctx.store, uid, found.blob), { objectMode: false })
			return h
				.response(bytes)
				.type(SAFE_TYPES.test(found.media_type) ? found.media_type : 'application/octet-stream')
				.bytes(found.size)
				.header('content-disposition', 'attachment')
				.header('content-security-policy', "sandbox; default-src 'none'")
				.header('cross-origin-resource-policy', 'same-origin')
				.header('cache-control', 'private, max-age=31536000, immutable')
				.etag(found.blob.slice('sha256:'.length))
		},
	})
}

/** As `partsOf`. Discards the rest of a body that is not read to its end: a client reads the response only after it has sent all. */
export async function* bodyOf(request: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
	try {
		yield* partsOf(request, signal)
	} finally {
		request.resume()
	}
}
