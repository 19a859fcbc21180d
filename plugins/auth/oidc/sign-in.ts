/**
 * The console's sign-in at the identity provider: the authorization code flow with PKCE (RFC 6749, RFC 7636, OpenID Connect
 * Core). State, nonce and verifier are derived from a random seed in a cookie of the browser. So the gateway stores nothing, and
 * only the browser that started a sign-in can complete it.
 */
import { hash } from 'node:crypto'
import type { Configuration } from 'openid-client'
import { Fault } from '../../../core/errors.ts'
import { randomText } from '../../../core/util/ids.ts'
import { once } from '../../shared/once.ts'
import { tryLater } from '../../shared/try-later.ts'
import type { Claims, OidcSettings } from './contract.ts'
import { fetchFrom } from './fetch.ts'

export interface SignIn {
	/** `seed`: for the cookie. Throws `unavailable` if the provider cannot be reached. */
	begin(redirect: string): Promise<{ url: string; seed: string }>
	/** Returns the claims of the ID token. `returned`: the callback's address. Throws `forbidden` and `unavailable`. */
	complete(returned: URL, seed: string | undefined): Promise<Claims>
}

const SEED_BYTES = 32
const SEED_FORM = /^[A-Za-z0-9_-]{43}$/
const RETRY_AFTER_S = 10
/** Concurrent requests for tokens: anyone can start a sign-in, and complete it with an invented code. */
const EXCHANGES = 32

/** Null without a `client_id`. */
export function signInOf({ issuer, client_id, client_secret }: OidcSettings): SignIn | null {
	if (client_id === undefined) return null
	const provider = once(() => discover(issuer, client_id, client_secret))
	const reach = async (): Promise<Configuration> => {
		try {
			return await provider()
		} catch (error) {
			const message = `${issuer} (auth.oidc.issuer) cannot be reached now; try again later`
			throw tryLater('unavailable', message, RETRY_AFTER_S, error)
		}
	}
	let exchanges = 0
	return {
		async begin(redirect) {
			const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import('openid-client')
			const seed = randomText(SEED_BYTES)
			const url = buildAuthorizationUrl(await reach(), {
				redirect_uri: redirect,
				scope: 'openid profile email',
				state: derived('state', seed),
				nonce: derived('nonce', seed),
				code_challenge: await calculatePKCECodeChallenge(derived('verifier', seed)),
				code_challenge_method: 'S256',
			})
			return { url: url.href, seed }
		},
		async complete(returned, seed = '') {
			if (!SEED_FORM.test(seed) || returned.searchParams.get('state') !== derived('state', seed))
				throw new Fault(
					'forbidden',
					'this sign-in was started in another browser, or has expired; open the console and start again',
				)
			const configuration = await reach()
			const { authorizationCodeGrant } = await import('openid-client')
			if (exchanges >= EXCHANGES)
				throw new Fault('unavailable', 'too many people sign in at the same time; start again in the console')
			exchanges++
			try {
				const tokens = await authorizationCodeGrant(configuration, returned, {
					expectedState: derived('state', seed),
					expectedNonce: derived('nonce', seed),
					pkceCodeVerifier: derived('verifier', seed),
					idTokenExpected: true,
				})
				return { ...tokens.claims() } as Claims
			} catch (error) {
				// Without the provider's message, which may contain the code.
				throw new Fault('forbidden', 'the identity provider did not confirm the sign-in; start again in the console', {
					cause: error,
				})
			} finally {
				exchanges--
			}
		},
	}
}

async function discover(issuer: string, client_id: string, client_secret: string | undefined): Promise<Configuration> {
	const client = await import('openid-client')
	const get = fetchFrom(issuer)
	return client.discovery(
		new URL(issuer),
		client_id,
		undefined,
		client_secret === undefined ? client.None() : client.ClientSecretBasic(client_secret),
		{
			execute: issuer.startsWith('http:') ? [client.allowInsecureRequests] : [],
			[client.customFetch]: (url, options) => get(url, options),
		},
	)
}

function derived(what: 'state' | 'nonce' | 'verifier', seed: string): string {
	return hash('sha256', `${what} ${seed}`, 'base64url')
}
