import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { Fault, isFault } from '../../core/errors.ts'
import { hasOneHost } from '../../core/http/one-host.ts'
import { networkCounter } from '../shared/network-counter.ts'
import { peerOf } from '../shared/peer.ts'
import { tryLater } from '../shared/try-later.ts'
import type { Actor } from '../../core/util/context.ts'
import { holds } from '../shared/scopes.ts'
import type { Claims } from './oidc/contract.ts'
import type { Auth, AuthSettings, Credentials, Needs, Token, Tokens } from './contract.ts'
import { limitsOf, permissionsOf } from './permissions.ts'
import { unauthorized } from './unauthorized.ts'
import { CLOCK_SKEW_S, InvalidToken, mayBeJwt } from './oidc/access-tokens.ts'
import type { Verify } from './oidc/access-tokens.ts'
import type { Session, Sessions } from './oidc/sessions.ts'
import { identityOf, noMatchingRule, permissionsFor, rulesFor } from './oidc/rules.ts'
import { requestCounter } from './rate-limits.ts'
import { whyNotLocal } from './local.ts'
import type { NotLocal } from './local.ts'
import type { AuthViolation, ReportViolation } from './violations.ts'

/** Failed attempts per minute and network. */
const FAILURES = 10

/**
 * Identifies the caller. A token is checked in every mode, and its scopes apply. Without a token, a local caller in loopback
 * mode may do everything, and a caller who meets the rules of the bootstrap may create the very first token.
 */
export function callersOf(
	{ auth_mode, allowed_hosts, cors_origins, oidc }: AuthSettings,
	tokens: Tokens,
	setupCode: string,
	report: ReportViolation,
	/** All scopes that the plugins of the current generation declare. */
	scopeNames: () => Iterable<string>,
	/** Verifies tokens of the identity provider. Absent: none is configured. */
	verify?: Verify,
	/** `find`: the session of a request from a page of the gateway. Absent: no identity provider is configured. */
	sessionOf?: { find: (request: IncomingMessage) => Promise<Session | undefined>; get: Sessions['get'] },
): Pick<Auth, 'authenticate' | 'check' | 'permits'> {
	const countFailure = networkCounter(FAILURES)
	const countRequest = requestCounter()
	const notLocalOf = (request: IncomingMessage, changes: boolean): NotLocal | null =>
		whyNotLocal(request, { allowedHosts: allowed_hosts, corsOrigins: cors_origins, changes })

	/**
	 * Only failures are counted and only failures are refused: 256 random bits cannot be guessed, and all clients behind a proxy
	 * share one address, so one bad client must not lock the others out.
	 */
	const refuse = (request: IncomingMessage, fault: Fault, reason: AuthViolation, token?: Token): never => {
		report(reason, fault, request, token && { token_id: token.id, actor: actorOf(token) })
		const seconds = countFailure(peerOf(request).remoteAddress ?? '')
		if (seconds === 0) throw fault
		throw tryLater(
			'rate_limited',
			`too many failed attempts from your address; wait ${seconds} s before you try another token or code (a valid token is always accepted)`,
			seconds,
		)
	}

	const forbid = (request: IncomingMessage, fault: Fault, caller: Pick<Credentials, 'token_id' | 'actor'>): never => {
		report('scope_missing', fault, request, caller)
		throw fault
	}

	/** For requests that would be accepted if they were local. They do not count as failures: all web pages share one address. */
	const reportPage = (request: IncomingMessage, notLocal: NotLocal | null): void => {
		if (!notLocal?.mayBePage) return
		const message = `a request without a token was refused, since ${notLocal.because}; a web page may have sent it`
		report('foreign_page', { message }, request)
	}

	const byClaims = (
		request: IncomingMessage,
		claims: Claims,
		local: boolean,
		needs: Needs,
		agent: string | undefined,
	): Credentials => {
		const rules = rulesFor(oidc?.rules ?? [], claims)
		const caller = identityOf(rules, claims)
		if (rules.length === 0) return forbid(request, noMatchingRule(), caller)
		return { ...caller, ...permissionsFor(rules, needs, agent, scopeNames()), local }
	}

	const byToken = async (
		request: IncomingMessage,
		header: string,
		local: boolean,
		needs: Needs,
		agent: string | undefined,
	): Promise<Credentials> => {
		const refuseToken = (message: string, reason: AuthViolation, token?: Token): never =>
			refuse(request, unauthorized(message, 'Bearer error="invalid_token"'), reason, token)
		const text = /^Bearer +(\S+)$/i.exec(header)?.[1]
		if (text === undefined) return refuseToken('the Authorization header must read: Bearer <token>', 'token_invalid')
		if (verify && mayBeJwt(text)) {
			const claims = await verify(text).catch((error: unknown) => {
				if (!(error instanceof InvalidToken)) throw error
				return refuseToken(error.message, error.isExpired ? 'token_expired' : 'token_invalid')
			})
			return byClaims(request, claims, local, needs, agent)
		}
		const token = await tokens.find(text)
		if (!token)
			return refuseToken('the token is unknown; check that it is complete, or create another', 'token_invalid')
		if (token.status === 'revoked') return refuseToken('the token was revoked; use another', 'token_revoked', token)
		if (token.status === 'expired')
			return refuseToken(`the token expired at ${token.expires_at}; use another`, 'token_expired', token)
		const caller = { token_id: token.id, ...permissionsOf(token, scopeNames()), actor: actorOf(token), local }
		const name = token.label === undefined ? `the token ${token.id}` : `the token "${token.label}"`
		return { ...caller, ...limitsOf(token.id, name, token.limits) }
	}

	const byBootstrap = async (request: IncomingMessage, notLocal: NotLocal | null): Promise<Credentials> => {
		if (notLocal !== null) {
			const code = request.headers['x-setup-code']
			if (typeof code !== 'string') {
				reportPage(request, notLocal)
				throw unauthorized(
					`no token exists yet, and the request does not count as local, since ${notLocal.because}; create the first token from the gateway's own machine, or send the header X-Setup-Code with the code that its log shows at start`,
				)
			}
			if (!isSame(code, setupCode)) {
				const fault = unauthorized("the set-up code is wrong; the gateway's log shows it, a new one at each start")
				return refuse(request, fault, 'setup_code_wrong')
			}
		}
		return { token_id: null, scope: ['tokens:admin'], actor: localActor, local: notLocal === null, bootstrap: true }
	}

	const identify = async (request: IncomingMessage, needs: Needs, agent: string | undefined): Promise<Credentials> => {
		const { scopes = [], bootstrap, local, changes = mayChange(scopes) } = needs
		const notLocal = notLocalOf(request, changes)
		const { authorization } = request.headers
		if (authorization !== undefined) return byToken(request, authorization, notLocal === null, needs, agent)
		const session = request.headers.cookie === undefined ? undefined : await sessionOf?.find(request)
		if (session && isOfIssuer(session.claims))
			return { ...byClaims(request, session.claims, notLocal === null, needs, agent), session: session.id }
		if (notLocal === null && auth_mode === 'loopback')
			return { token_id: null, scope: ['*'], actor: localActor, local: true }
		if (notLocal === null && local) return { token_id: null, scope: [...scopes], actor: localActor, local: true }
		if (bootstrap && (await tokens.noneYet())) return byBootstrap(request, notLocal)
		if (auth_mode === 'loopback' || local) reportPage(request, notLocal)
		throw unauthorized(
			`send a token (Authorization: Bearer <token>): ${auth_mode === 'token' ? 'auth_mode is token' : `the request does not count as local, since ${notLocal?.because}`}`,
		)
	}

	/** False for a session from before a change of the issuer. The normalized form ignores a slash after the host. */
	const isOfIssuer = ({ iss }: Claims): boolean =>
		oidc !== null && URL.parse(iss)?.href === URL.parse(oidc.issuer)?.href

	/** Does not verify the signature again: access tokens are short-lived. But the rules may have changed, and permit less. */
	const isCurrent = (claims: Claims, rules: Credentials['rules']): boolean =>
		isOfIssuer(claims) &&
		(claims.exp + CLOCK_SKEW_S) * 1000 > Date.now() &&
		isDeepStrictEqual(rulesFor(oidc?.rules ?? [], claims), rules)

	return {
		async authenticate(request, needs = {}, agent) {
			if (!hasOneHost(request)) throw new Fault('invalid_request', 'send exactly one Host header')
			const credentials = await identify(request, needs, agent)
			const { requests_per_minute } = credentials
			if (requests_per_minute !== undefined) await countRequest(credentials, requests_per_minute)
			if (needs.wholeGateway && credentials.agents)
				return forbid(request, onlyForAgents(credentials.agents), credentials)
			if (needs.scopes && !holds(credentials.scope, ...needs.scopes))
				return forbid(request, missingScope(needs.scopes, credentials), credentials)
			return credentials
		},
		async permits(request, scopes) {
			const { authorization, cookie } = request.headers
			const session = authorization === undefined && cookie !== undefined ? await sessionOf?.find(request) : undefined
			if (authorization === undefined && !session)
				return auth_mode === 'loopback' && notLocalOf(request, false) === null
			try {
				const needs = { scopes, wholeGateway: true, changes: false }
				const { scope, agents } = await identify(request, needs, undefined)
				return !agents && holds(scope, ...scopes)
			} catch (error) {
				if (isFault(error, 'unauthorized', 'rate_limited', 'forbidden', 'unavailable')) return false
				throw error
			}
		},
		async check({ token_id, local, bootstrap, claims, rules, session }) {
			if (session !== undefined && !(await sessionOf?.get(session))) return false
			if (claims) return isCurrent(claims, rules)
			if (token_id !== null) return (await tokens.get(token_id))?.status === 'active'
			return local && !bootstrap && auth_mode === 'loopback'
		},
	}
}

/** Also for a caller with the set-up code, who has read the gateway's log. */
const localActor: Actor = { kind: 'local' }

function actorOf({ id, label }: Pick<Token, 'id' | 'label'>): Actor {
	return { kind: 'token', id, ...(label !== undefined && { label }) }
}

function missingScope(wanted: NonNullable<Needs['scopes']>, { scope }: Credentials): Fault {
	const named = wanted.filter((scope) => scope !== '*')
	const needed = named.length > 0 ? named : ['*']
	return new Fault('forbidden', `this needs the scope ${needed.join(' or ')}; the token has ${scope.join(', ')}`, {
		headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${needed.join(' ')}"` },
	})
}

function onlyForAgents(agents: readonly string[]): Fault {
	return new Fault(
		'forbidden',
		`this concerns the whole gateway, and the token is only for the agents ${agents.join(', ')}; use a token for all agents`,
	)
}

/** Compares in constant time; the hashes give both sides the same length. */
function isSame(given: string, wanted: string): boolean {
	return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', wanted, 'buffer'))
}

/** Whether a request that needs one of these scopes may change something: none of them is for reading. */
function mayChange(needed: readonly string[]): boolean {
	return !needed.some((scope) => scope.endsWith(':read'))
}
