/**
 * Verifies access tokens of the identity provider: JSON Web Tokens (RFC 7519, RFC 9068), signed with keys that the issuer
 * publishes. The keys are cached for ten minutes, and for an unknown key fetched again at most every ten seconds.
 */
import type { JWTPayload, ProtectedHeaderParameters } from 'jose'
import { isFault } from '../../../core/errors.ts'
import type { Fault } from '../../../core/errors.ts'
import { once } from '../../shared/once.ts'
import { tryLater } from '../../shared/try-later.ts'
import type { Claims, OidcSettings } from './contract.ts'
import { fetchFrom } from './fetch.ts'

/** No symmetric algorithms: with them, the public key would be accepted as the secret. */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')
export const CLOCK_SKEW_S = 60
const KEYS_MS = 600_000
const REREAD_MS = 10_000
const TIMEOUT_MS = 10_000
const RETRY_AFTER_S = 10
/** In characters. All headers together have a limit of 16 KiB. */
const TOKEN_LIMIT = 12_000

/** Why a token is refused. */
export class InvalidToken extends Error {
	readonly isExpired: boolean
	constructor(message: string, isExpired = false) {
		super(message)
		this.isExpired = isExpired
	}
}

export type Verify = (token: string) => Promise<Claims>

/** The gateway's own tokens have no dots. */
export function mayBeJwt(token: string): boolean {
	return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)
}

/**
 * `audiences`: the accepted audiences if the settings have none. The returned function throws `InvalidToken`, and `unavailable`
 * while the issuer cannot be reached.
 */
export function verifierOf(
	{ issuer, audience, client_id }: Omit<OidcSettings, 'rules'>,
	audiences: () => string[],
): Verify {
	const keys = once(() => keysOf(issuer))
	return async (token) => {
		if (token.length > TOKEN_LIMIT) throw new InvalidToken(`the token has more than ${TOKEN_LIMIT} characters`)
		const { jwtVerify, errors } = await import('jose') // an idle gateway does not have it in memory
		try {
			const { payload, protectedHeader } = await jwtVerify(token, await keys(), {
				issuer,
				audience: audience ?? audiences(),
				algorithms: ALGORITHMS,
				clockTolerance: CLOCK_SKEW_S,
				requiredClaims: ['exp', 'sub'],
			})
			refuseIdToken(payload, protectedHeader, client_id)
			return payload as Claims
		} catch (error) {
			if (error instanceof errors.JWTExpired) throw new InvalidToken('the token has expired; get another', true)
			if (error instanceof errors.JWKSTimeout) throw unreachable(issuer, error)
			if (error instanceof errors.JOSEError) throw new InvalidToken(`the token is not valid: ${error.message}`)
			throw isFault(error) || error instanceof InvalidToken ? error : unreachable(issuer, error)
		}
	}
}

/** ID tokens tell clients who has signed in. A client must not be able to use one as an access token (RFC 9068, section 4). */
function refuseIdToken(
	payload: JWTPayload,
	{ typ }: ProtectedHeaderParameters & { typ?: string },
	client_id: string | undefined,
): void {
	if (/^(application\/)?at\+jwt$/i.test(typ ?? '')) return
	const { aud } = payload
	const isForClient = client_id !== undefined && [aud].flat().every((audience) => audience === client_id)
	if (isForClient || ['nonce', 'at_hash', 'c_hash'].some((claim) => claim in payload))
		throw new InvalidToken('this is an ID token; send an access token')
}

async function keysOf(issuer: string) {
	const { createRemoteJWKSet, customFetch } = await import('jose')
	const get = fetchFrom(issuer)
	// Of OpenID Connect Discovery. Not every provider has the document of RFC 8414.
	const document = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
	const answer = await get(document)
	if (answer.status !== 200) throw new Error(`${document} answered ${answer.status}`)
	const found = (await answer.json()) as { issuer?: unknown; jwks_uri?: unknown }
	if (found.issuer !== issuer) throw new Error(`${document} is about the issuer ${JSON.stringify(found.issuer)}`)
	if (typeof found.jwks_uri !== 'string') throw new Error(`${document} has no jwks_uri`)
	return createRemoteJWKSet(new URL(found.jwks_uri), {
		cacheMaxAge: KEYS_MS,
		cooldownDuration: REREAD_MS,
		timeoutDuration: TIMEOUT_MS,
		[customFetch]: get,
	})
}

function unreachable(issuer: string, cause: unknown): Fault {
	const message = `the keys of ${issuer} (auth.oidc.issuer) cannot be read now; try again later`
	return tryLater('unavailable', message, RETRY_AFTER_S, cause)
}
