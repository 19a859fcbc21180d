import type { IncomingMessage } from 'node:http'
import { canAdminister, noAdministrator } from './administrators.ts'
import { Fault } from '../../core/errors.ts'
import { randomText } from '../../core/util/ids.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { Context } from '../../core/plugin.ts'
import events from './events.ts'
import { isLoopback } from './address.ts'
import { callersOf } from './callers.ts'
import { allowOrigins } from './cors.ts'
import type { Auth, AuthSettings } from './contract.ts'
import { guard } from './guard.ts'
import { verifierOf } from './oidc/access-tokens.ts'
import { cookiesFor, isOfOwnPage } from './oidc/cookies.ts'
import { loginRoutes } from './oidc/routes.ts'
import type { ConsoleLogin } from './oidc/routes.ts'
import { scopesIn } from './oidc/rules.ts'
import { sessionsOf } from './oidc/sessions.ts'
import type { Session } from './oidc/sessions.ts'
import { signInOf } from './oidc/sign-in.ts'
import { loginPage } from './login-page.ts'
import { answerStream, answerWhole } from './open-answer.ts'
import { OpenRequestTable } from './open-requests.ts'
import { routes } from './routes.ts'
import { tokensOf } from './tokens.ts'
import { violationsOf } from './violations.ts'

const SETUP_CODE_BYTES = 15

/** Authentication and authorization: tokens with scopes, local callers, the first token, the identity provider. */
export default definePlugin<AuthSettings, Auth & { scopeNames: Set<string>; login: ConsoleLogin }>({
	name: 'auth',
	events,
	scopes: {
		'tokens:admin': 'Create, list and revoke tokens',
		'*': 'Everything',
	},
	async start(ctx) {
		const tokens = tokensOf(ctx)
		const setupCode = randomText(SETUP_CODE_BYTES)
		warnOfOpenAddress(ctx)
		const scopeNames = new Set<string>()
		const { oidc } = ctx.config
		const own = (): string => ctx.gateway.publicUrl() ?? ''
		const report = violationsOf(ctx)
		const login = { signIn: oidc && signInOf(oidc), sessions: sessionsOf(ctx), report }
		const find = async (request: IncomingMessage): Promise<Session | undefined> => {
			const base = ctx.gateway.publicUrl()
			const cookie = base === null ? undefined : cookiesFor(base).of(request, 'session')
			if (base === null || cookie === undefined || !isOfOwnPage(request, base)) return undefined
			return login.sessions.find(cookie)
		}
		const verify = oidc ? verifierOf(oidc, () => [own(), `${own()}/`, `${own()}/mcp`]) : undefined
		const isNew = await tokens.noneYet()
		if (ctx.config.auth_mode === 'token' && !canAdminister(await tokens.list(), oidc)) refuseLockout(ctx, isNew)
		if (isNew) {
			ctx.log.info(
				`no token was created yet. The first may be created without one: from this machine at once, from elsewhere with the header X-Setup-Code: ${setupCode}`,
			)
		}
		return {
			tokens,
			auth_mode: ctx.config.auth_mode,
			cors_origins: ctx.config.cors_origins,
			issuer: oidc?.issuer ?? null,
			issuerScopes: scopesIn(oidc?.rules ?? []),
			...callersOf(
				ctx.config,
				tokens,
				setupCode,
				report,
				() => scopeNames,
				verify,
				oidc ? { find, get: login.sessions.get } : undefined,
			),
			login,
			scopeNames,
			answerWhole,
			answerStream: (...request) => answerStream(ctx.redactor, ...request),
			loginPage,
			// `check` of the current instance, since the table outlives this one.
			openRequests: (options) => new OpenRequestTable(options, async (caller) => ctx.use('auth').check(caller)),
		}
	},
	guard(server, { config }, auth, generation) {
		refuseUnknownScopes(config, generation.scopes)
		for (const name of generation.scopes.keys()) auth.scopeNames.add(name)
		guard(server, auth, generation)
	},
	http(server, ctx, auth, { scopes }) {
		const { config } = ctx
		allowOrigins(server, config.cors_origins)
		loginRoutes(server, ctx, auth.login)
		routes(server, config, auth, scopes)
	},
})

/** The schema cannot check this: the scopes of a generation are known only once all of its plugins are. */
function refuseUnknownScopes({ oidc }: AuthSettings, known: ReadonlyMap<string, unknown>): void {
	for (const [at, { scopes }] of (oidc?.rules ?? []).entries()) {
		const unknown = scopes.find((scope) => !known.has(scope))
		if (unknown === undefined) continue
		const message = `no plugin declares the scope "${unknown}"; there are ${[...known.keys()].join(', ')}`
		throw new Fault('config_invalid', message, { errors: [{ path: `auth.oidc.rules.${at}.scopes`, message }] })
	}
}

/**
 * Refuses a change of the mode after which no caller could administer the gateway. A start only warns: tokens with other
 * scopes may be in use, and if none was ever created, the first one still can be.
 */
function refuseLockout(ctx: Context<AuthSettings>, isNew: boolean): void {
	if (ctx.find('auth')?.auth_mode === 'loopback') {
		const errors = [{ path: 'auth_mode', message: noAdministrator }]
		throw new Fault('config_invalid', noAdministrator, { errors })
	}
	if (isNew) return
	const message =
		'auth_mode is token and no valid token can administer the gateway; set auth_mode: loopback in gateway.yaml, create one (svc tokens create --scope "*"), then set auth_mode: token again'
	ctx.log.warn(message)
	ctx.trouble(message)
}

function warnOfOpenAddress({ config, log }: Context<AuthSettings>): void {
	const { auth_mode, host } = config
	if (auth_mode !== 'loopback' || host === 'localhost' || isLoopback(host)) return
	log.warn(
		`auth_mode is loopback and the gateway listens at ${host}, where other machines reach it: they need a token, but programs on this machine do not; set auth_mode: token, or server.host: 127.0.0.1`,
	)
}
