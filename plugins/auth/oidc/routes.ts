/** The console's sign-in at the identity provider, and its sign-out. */
import type { Server } from '@hapi/hapi'
import { Joi } from '../../../core/util/lazy-joi.ts'
import { pageAnswers } from '../../shared/plain-page.ts'
import { Fault, isFault } from '../../../core/errors.ts'
import { loginPage } from '../login-page.ts'
import type { Context } from '../../../core/plugin.ts'
import type { ReportViolation } from '../violations.ts'
import type { AuthSettings } from '../contract.ts'
import { cookiesFor, isOfOwnPage } from './cookies.ts'
import { identityOf, noMatchingRule, rulesFor } from './rules.ts'
import type { Sessions } from './sessions.ts'
import type { SignIn } from './sign-in.ts'

const CALLBACK = '/v1/auth/callback'
/** Statuses of a failed sign-in. All others become 503. */
const REFUSALS = [400, 403, 404]
const tags = ['api', 'tokens']

export interface ConsoleLogin {
	signIn: SignIn | null
	sessions: Sessions
	report: ReportViolation
}

export function loginRoutes(
	server: Server,
	ctx: Context<AuthSettings>,
	{ signIn, sessions, report }: ConsoleLogin,
): void {
	const { oidc } = ctx.config
	const base = (): string => ctx.gateway.publicUrl() ?? 'http://127.0.0.1'
	const ready = (): SignIn => {
		if (signIn) return signIn
		throw new Fault('not_found', 'sign-in is not configured: the gateway has no auth.oidc with a client_id')
	}

	server.route({
		method: 'GET',
		path: '/v1/auth/login',
		options: {
			id: 'describeLogin',
			description: 'Get the identity provider of the sign-in',
			notes: 'Needs no token. 404 without `auth.oidc.client_id`.',
			tags,
			auth: false,
			plugins: { openapi: { errors: [404] } },
			response: {
				status: { 200: Joi.object({ issuer: Joi.string().required().example('https://login.example.com') }) },
			},
		},
		handler: () => {
			ready()
			return { issuer: oidc?.issuer }
		},
	})
	server.route({
		method: 'POST',
		path: '/v1/auth/login',
		options: {
			id: 'beginLogin',
			description: 'Start a sign-in to the console',
			notes:
				'For pages of the gateway. Sets a cookie. Open `url` in the same browser within 10 minutes. The identity provider redirects it to `/v1/auth/callback` below `server.public_url`.',
			tags,
			auth: false,
			plugins: { openapi: { errors: [404, 409, 503] } },
			response: {
				status: {
					200: Joi.object({
						url: Joi.string().required().example('https://login.example.com/authorize?client_id=gateway'),
					}),
				},
			},
		},
		handler: async (_request, h) => {
			const begin = ready()
			const cookies = cookiesFor(base())
			const { url, seed } = await begin.begin(`${base()}${CALLBACK}`)
			return h.response({ url }).header('set-cookie', cookies.seed(seed)).header('cache-control', 'no-store')
		},
	})
	server.route({
		method: 'GET',
		path: CALLBACK,
		options: {
			id: 'endLogin',
			description: 'Complete a sign-in to the console',
			notes:
				'For browsers: the identity provider redirects here. Shows a page that redirects to the console. Public, since `state` proves that this browser started the sign-in.',
			tags,
			auth: false,
			plugins: { openapi: { answers: pageAnswers(200, ...REFUSALS, 503) } },
		},
		handler: async (request, h) => {
			const { req } = request.raw
			try {
				const cookies = cookiesFor(base())
				const claims = await ready().complete(new URL(`${base()}${req.url}`), cookies.of(req, 'seed'))
				const rules = rulesFor(oidc?.rules ?? [], claims)
				const { actor } = identityOf(rules, claims)
				if (rules.length === 0) throw noMatchingRule()
				const cookie = await sessions.create(claims)
				await ctx.emit({ event_type: 'auth.signed_in', payload: { actor } })
				return loginPage(h, 200, { title: 'Signed in', text: 'The console opens now.', next: '/' })
					.header('set-cookie', cookies.session(cookie))
					.header('set-cookie', cookies.forget('seed'), { append: true })
			} catch (error) {
				if (!isFault(error)) throw error
				report('login_refused', error, req)
				const code = REFUSALS.includes(error.status) ? error.status : 503
				return loginPage(h, code, { title: 'Not signed in', text: error.message })
			}
		},
	})
	server.route({
		method: 'POST',
		path: '/v1/auth/logout',
		options: {
			id: 'logout',
			description: 'Sign out of the console',
			notes: "Ends the cookie's session. Without the cookie, it does nothing. For pages of the gateway only.",
			tags,
			auth: false,
			plugins: { openapi: { answers: { 204: {} }, errors: [403] } },
		},
		handler: async (request, h) => {
			const { req } = request.raw
			const cookies = cookiesFor(base())
			const cookie = cookies.of(req, 'session')
			const session = cookie === undefined ? undefined : await sessions.find(cookie)
			if (session) {
				if (!isOfOwnPage(req, base())) throw new Fault('forbidden', 'only a page of the gateway itself may sign out')
				await sessions.end(session.id)
				const { actor } = identityOf([], session.claims)
				await ctx.emit({ event_type: 'auth.signed_out', payload: { actor } })
			}
			return h.response().code(204).header('set-cookie', cookies.forget('session'))
		},
	})
}
