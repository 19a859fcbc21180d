import { readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Server } from '@hapi/hapi'
import { Joi } from '../../../core/util/lazy-joi.ts'
import { Fault } from '../../../core/errors.ts'
import { once } from '../../shared/once.ts'
import { encoded } from '../../shared/encoded.ts'
import type { Source } from '../../shared/encoded.ts'
import { pagePolicy } from '../../shared/page-policy.ts'
import { pageAnswers } from '../../shared/plain-page.ts'

/**
 * Swagger UI sets styles by script only, which needs no `unsafe-inline`, and does not evaluate text as code, which would need
 * `unsafe-eval`. Its images are data: URLs.
 */
const contentSecurityPolicy = pagePolicy(
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self' data:",
	"connect-src 'self'",
)

const page = `<!doctype html>
<html lang="en">
	<head>
		<meta charset="utf-8" />
		<meta name="viewport" content="width=device-width, initial-scale=1" />
		<title>Agent gateway: reference of the API</title>
		<link rel="icon" type="image/png" href="/docs/favicon.png" />
		<link rel="stylesheet" href="/docs/swagger-ui.css" />
	</head>
	<body>
		<noscript>This page needs JavaScript. Without it, read <a href="/v1/openapi.json">/v1/openapi.json</a>.</noscript>
		<div id="reference"></div>
		<script src="/docs/swagger-ui-bundle.js"></script>
		<script src="/docs/reference.js"></script>
	</body>
</html>
`

interface Asset {
	/** For `require.resolve`. */
	from: string
	type: string
}

const JAVASCRIPT = 'text/javascript'
/** The only files that are served: a name from a request never becomes a path. */
const assets = new Map<string, Asset>([
	['swagger-ui.css', { from: 'swagger-ui-dist/swagger-ui.css', type: 'text/css' }],
	['swagger-ui-bundle.js', { from: 'swagger-ui-dist/swagger-ui-bundle.js', type: JAVASCRIPT }],
	['favicon.png', { from: 'swagger-ui-dist/favicon-32x32.png', type: 'image/png' }],
	['reference.js', { from: './reference.js', type: JAVASCRIPT }],
])

/** Serves Swagger UI for the API description, with local assets only, which are loaded on the first request. */
export function docsRoutes(server: Server): void {
	const answers = new Map(
		[...assets].map(([name, asset]) => [name, once(async () => encoded(await load(asset)))] as const),
	)

	server.route({
		method: 'GET',
		path: '/docs',
		options: {
			id: 'getDocs',
			description: 'The reference of the API, for people',
			notes: 'A page that shows GET /v1/openapi.json, and can send its requests. It loads nothing from other hosts.',
			tags: ['api', 'gateway'],
			auth: false,
			plugins: {
				openapi: { answers: pageAnswers(200) },
			},
		},
		handler: (_request, h) =>
			h
				.response(page)
				.type('text/html')
				.header('content-security-policy', contentSecurityPolicy)
				.header('cache-control', 'no-cache'),
	})
	server.route<{ Params: { file: string } }>({
		method: 'GET',
		path: '/docs/{file}',
		options: {
			id: 'getDocsFile',
			description: 'A file of the page /docs',
			tags: ['api', 'gateway'],
			auth: false,
			validate: {
				params: Joi.object({
					file: Joi.string().max(64).required().description('Name of the file.').example('reference.js'),
				}),
			},
			plugins: {
				openapi: {
					answers: {
						200: Object.fromEntries(
							[...assets.values()].map(({ type }) => [type, Joi.string().example('the bytes of the file')]),
						),
						304: {},
					},
				},
			},
		},
		handler: async (request, h) => {
			const answer = answers.get(request.params.file)
			if (!answer) throw new Fault('not_found', 'the page has no such file; GET /docs shows the page')
			return (await answer())(request, h)
		},
	})
}

async function load({ from, type }: Asset): Promise<Source> {
	try {
		const path = createRequire(import.meta.url).resolve(from)
		const [bytes, { mtimeMs }] = await Promise.all([readFile(path), stat(path)])
		return { bytes, type, etag: `${bytes.length.toString(36)}-${Math.floor(mtimeMs).toString(36)}` }
	} catch (error) {
		throw new Fault('unavailable', `the page lacks ${from}; install the gateway's packages again`, { cause: error })
	}
}
