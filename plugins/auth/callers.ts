import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/errors.ts'
import type { Auth, AuthSettings, Credentials, Needs, Tokens } from './contract.ts'
import { failureCounter } from './failures.ts'
import { hasOneHost, whyNotLocal } from './local.ts'

/**
 * Who is calling. A token is checked whatever the mode, and its scopes hold; without one, a local caller in loopback
 * mode may do everything, and anybody who meets the rules of the bootstrap may create the very first token.
 */
export function callersOf(
	{ auth_mode, allowed_hosts }: AuthSettings,
	tokens: Tokens,
	setupCode: string,
): Pick<Auth, 'authenticate' | 'check'> {
	const countFailure = failureCounter()

	/**
	 * Only failures are counted and only failures are refused: 256 random bits cannot be guessed, and behind a proxy all
	 * clients have one address, so one bad client must not lock the good ones out.
	 */
	const refuse = async (request: IncomingMessage, fault: Fault): Promise<never> => {
		const seconds = await countFailure(request.socket.remoteAddress ?? '')
		if (seconds === 0) throw fault
		throw new Fault(
			'rate_limited',
			`too many failed attempts from your address; wait ${seconds} s before you try another token or code (a valid token is taken at any time)`,
			{ headers: { 'retry-after': String(seconds) } },
		)
	}

	const byToken = async (request: IncomingMessage, header: string, local: boolean): Promise<Credentials> => {
		const text = /^Bearer +(\S+)$/i.exec(header)?.[1]
		if (text === undefined) {
			return refuse(request, invalidToken('the Authorization header must read: Bearer <token>'))
		}
		const token = await tokens.find(text)
		if (!token)
			return refuse(request, invalidToken('the token is unknown; check that it is complete, or create another'))
		if (token.status === 'revoked') return refuse(request, invalidToken('the token was revoked; use another'))
		if (token.status === 'expired') {
			return refuse(request, invalidToken(`the token expired at ${token.expires_at}; use another`))
		}
		return { token_id: token.id, scope: token.scopes, local }
	}

	const byBootstrap = async (request: IncomingMessage, notLocal: string | null): Promise<Credentials> => {
		if (notLocal !== null) {
			const code = request.headers['x-setup-code']
			if (typeof code !== 'string') {
				throw missingToken(
					`no token exists yet, and the request does not count as local, since ${notLocal}; create the first token from the gateway's own machine, or send the header X-Setup-Code with the code that its log shows at start`,
				)
			}
			if (!isSame(code, setupCode)) {
				return refuse(request, missingToken("the set-up code is wrong; the gateway's log shows it, anew at each start"))
			}
		}
		return { token_id: null, scope: ['tokens:admin'], local: notLocal === null, bootstrap: true }
	}

	const identify = async (request: IncomingMessage, { scopes = [], bootstrap, local }: Needs): Promise<Credentials> => {
		const notLocal = whyNotLocal(request, allowed_hosts)
		const { authorization } = request.headers
		if (authorization !== undefined) return byToken(request, authorization, notLocal === null)
		if (notLocal === null && auth_mode === 'loopback') return { token_id: null, scope: ['*'], local: true }
		if (notLocal === null && local) return { token_id: null, scope: [...scopes], local: true }
		if (bootstrap && (await tokens.noneYet())) return byBootstrap(request, notLocal)
		throw missingToken(
			`send a token (Authorization: Bearer <token>): ${auth_mode === 'token' ? 'auth_mode is token' : `the request does not count as local, since ${notLocal}`}`,
		)
	}

	return {
		async authenticate(request, needs = {}) {
			if (!hasOneHost(request)) throw new Fault('invalid_request', 'send exactly one Host header')
			const credentials = await identify(request, needs)
			if (needs.scopes) refuseWithout(needs.scopes, credentials)
			return credentials
		},
		async check({ token_id, local, bootstrap }) {
			if (token_id !== null) return (await tokens.get(token_id))?.status === 'active'
			return local && !bootstrap && auth_mode === 'loopback'
		},
	}
}

function refuseWithout(wanted: NonNullable<Needs['scopes']>, { scope }: Credentials): void {
	if (scope.includes('*') || wanted.some((one) => scope.includes(one))) return
	const named = wanted.filter((one) => one !== '*')
	const needed = named.length > 0 ? named : ['*']
	throw new Fault('forbidden', `this needs the scope ${needed.join(' or ')}; the token has ${scope.join(', ')}`, {
		headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${needed.join(' ')}"` },
	})
}

function missingToken(message: string): Fault {
	return new Fault('unauthorized', message, { headers: { 'www-authenticate': 'Bearer' } })
}

function invalidToken(message: string): Fault {
	return new Fault('unauthorized', message, { headers: { 'www-authenticate': 'Bearer error="invalid_token"' } })
}

/** Takes as long for a near miss as for a far one; the hashes give both one length. */
function isSame(given: string, wanted: string): boolean {
	const hash = (text: string): Buffer => createHash('sha256').update(text).digest()
	return timingSafeEqual(hash(given), hash(wanted))
}
