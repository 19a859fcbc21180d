/** The page at `/` of the gateway's address: what it is, and its health. */
import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { plainPage, plainPolicy } from '../shared/plain-page.ts'
import type { Context } from '../../core/plugin.ts'
import type { Health } from '../../core/status.ts'
import { healthOf, isReady } from './health.ts'

const NAME = 'svc gateway'
const WHAT = 'A gateway for autonomous agents.'

const sentences: Record<Health['status'], string> = {
	ok: 'It is healthy.',
	degraded: 'It is running, but something needs attention.',
	migrating: 'It is upgrading its data.',
	starting: 'It is starting.',
	draining: 'It is shutting down.',
}

const summary = Joi.object({
	name: Joi.string().required().example(NAME),
	description: Joi.string().required().example(WHAT),
	status: Joi.valid(...Object.keys(sentences))
		.required()
		.example('ok'),
	docs: Joi.string().description('The path of the API reference; absent if it is not served.').example('/docs'),
}).id('FrontPage')

/** Public, so it shows neither version nor checks. */
export function frontPage(server: Server, ctx: Context): void {
	const { gateway } = ctx
	server.route({
		method: 'GET',
		path: '/',
		options: {
			id: 'getFrontPage',
			description: 'Front page, or version and health of the gateway',
			notes:
				'A page for people; JSON with `Accept: application/json`. 503 while the gateway starts or drains, as GET /readyz.',
			tags: ['api', 'gateway'],
			auth: false,
			plugins: {
				openapi: {
					answers: Object.fromEntries(
						[200, 503].map((status) => [
							status,
							{ 'text/html': Joi.string().example('<!doctype html>'), 'application/json': summary },
						]),
					),
				},
			},
		},
		handler: async (request, h) => {
			const health = healthOf(gateway, false)
			const docs = server.match('get', '/docs') === null ? undefined : '/docs'
			const asJson = prefersJson(request.headers.accept)
			const page = asJson ? undefined : await extendedPage(ctx)
			const body = asJson
				? { name: NAME, description: WHAT, status: health.status, ...(docs && { docs }) }
				: (page?.html ?? pageOf(health.status, docs))
			const response = h
				.response(body)
				.code(isReady(health) ? 200 : 503)
				.vary('accept')
				.header('cache-control', 'no-store')
			if (asJson) return response
			const policy = page?.contentSecurityPolicy ?? plainPolicy
			return response.type('text/html').header('content-security-policy', policy)
		},
	})
}

/** The page that another plugin adds, if any. */
async function extendedPage({
	extensions,
	log,
}: Context): Promise<{ html: string; contentSecurityPolicy: string } | undefined> {
	const [extension] = extensions('front-page')
	if (!extension) return undefined
	try {
		const { value, run } = extension
		return { html: await run(() => value.html()), contentSecurityPolicy: value.contentSecurityPolicy }
	} catch (error) {
		log.error({ err: error, plugin: extension.plugin }, 'the page at / could not be made')
		return undefined
	}
}

/** Browsers accept text/html; a client without an Accept header gets the page. */
function prefersJson(accept: unknown): boolean {
	return typeof accept === 'string' && /\bapplication\/json\b/i.test(accept) && !/\btext\/html\b/i.test(accept)
}

function pageOf(status: Health['status'], docs: string | undefined): string {
	const link = docs === undefined ? '' : `\n<p><a href="${docs}">Reference of the API</a></p>`
	return plainPage(NAME, `<p>${WHAT} ${sentences[status]}</p>${link}`)
}
