/**
 * OAuth as the MCP specification of 2025-11-25 requires it: the functions of the official SDK, with the checks that they leave to
 * the caller. Loaded with the first server that requires a login, since it takes as long to load as the SDK's client.
 */
import { createPrivateKey } from 'node:crypto'
import type { AuthorizationServerMetadata, OAuthClientInformationMixed } from '@modelcontextprotocol/sdk/shared/auth.js'
import {
	discoverAuthorizationServerMetadata,
	discoverOAuthProtectedResourceMetadata,
	exchangeAuthorization,
	extractWWWAuthenticateParams,
	fetchToken,
	refreshAuthorization,
	registerClient,
	selectResourceURL,
	startAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js'
import type { AddClientAuthentication, OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { createPrivateKeyJwtAuth } from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import { InvalidClientMetadataError, InvalidGrantError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { defined } from '../../../core/util/defined.ts'
import { Fault, isFault } from '../../../core/errors.ts'
import { clientMetadata } from './client.ts'

/** The authorization server of an MCP server. Plain data, at most a few documents of 64 KiB. */
export interface Issuer {
	/** The authorization server's address, as the MCP server named it. */
	issuer: string
	/** Absent: it follows the specification of 2025-03-26, with endpoints at fixed paths. */
	metadata?: AuthorizationServerMetadata
	/** The resource that the tokens are for (RFC 8707), exactly as the MCP server's metadata spells it. */
	resource?: string
	/** The scopes that the MCP server lists. */
	scopes?: string[]
}

export type ClientInformation = OAuthClientInformationMixed

/** A client, with its way to authenticate. */
export interface AuthClient {
	information: ClientInformation
	authenticate?: AddClientAuthentication
}

/** The challenge of a response with status 401 or 403. */
export interface Challenge {
	metadata_url?: URL
	scope?: string
	/** Such as `insufficient_scope`. */
	error?: string
}

export interface Tokens {
	access_token: string
	refresh_token?: string
	scope?: string
	/** When the access token expires, and when to renew it; milliseconds since 1970. Null if the server does not specify it. */
	expires_at: number | null
	renew_at: number | null
}

/** Limit of a token's lifetime, since a date cannot be arbitrarily far away. */
const LONGEST_S = 10 * 366 * 24 * 3600
/** Time before its expiry at which a token is renewed; or a fifth of its lifetime, if that is shorter. */
const EARLY_MS = 30_000

export function challengeOf(response: Response): Challenge {
	const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response)
	return defined({ metadata_url: resourceMetadataUrl, scope, error })
}

/**
 * Finds the authorization server of an MCP server. If the MCP server's documents name none, returns undefined; or, with
 * `isCertain`, the endpoints of the specification of 2025-03-26. Throws `mcp_failed` if the documents cannot be trusted (another
 * resource, another issuer, no PKCE), and what `fetch` throws.
 */
export async function findIssuer(
	server: URL,
	{ metadata_url }: Challenge,
	fetch: FetchLike,
	isCertain = false,
): Promise<Issuer | undefined> {
	const about = await orUndefined(
		discoverOAuthProtectedResourceMetadata(server, metadata_url ? { resourceMetadataUrl: metadata_url } : {}, fetch),
	)
	const [named] = about?.authorization_servers ?? []
	const issuer = named ?? new URL('/', server).href
	const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn: fetch }).catch((error: unknown) => {
		if (isFault(error) || named !== undefined) throw error
		return undefined
	})
	if (!about && !metadata && !isCertain) return undefined
	if (named !== undefined && metadata && !isSame(metadata.issuer, named))
		throw refused(`${named} describes itself as another authorization server, ${metadata.issuer}`)
	if (metadata && !metadata.code_challenge_methods_supported?.includes('S256'))
		throw refused(`${issuer} does not support PKCE with S256 (code_challenge_methods_supported)`)
	const resource = about && (await resourceOf(server, about))
	return defined({ issuer, metadata, resource, scopes: about?.scopes_supported })
}

/** Returns the text of the metadata, not a normalized URL: authorization servers compare it exactly, including a final slash. */
async function resourceOf(
	server: URL,
	about: Awaited<ReturnType<typeof discoverOAuthProtectedResourceMetadata>>,
): Promise<string> {
	try {
		await selectResourceURL(server, {} as OAuthClientProvider, about)
		return about.resource
	} catch (error) {
		throw refused(`its metadata describes another resource, ${about.resource}`, error)
	}
}

/** Registers a client (RFC 7591). If the server does not register clients, throws a Fault that names `redirect`. */
export async function register(
	{ issuer, metadata }: Issuer,
	redirect: string,
	scope: string | undefined,
	fetch: FetchLike,
): Promise<ClientInformation> {
	if (metadata && metadata.registration_endpoint === undefined)
		throw refused(
			`${issuer} does not register clients automatically: create one there with the redirect address ${redirect}, and add the MCP server again with auth.client_id`,
		)
	const wanted = defined({ metadata, clientMetadata: clientMetadata(redirect), fetchFn: fetch })
	try {
		return await registerClient(issuer, defined({ ...wanted, scope }))
	} catch (error) {
		// Some servers accept the scopes of their resources only in requests for tokens.
		if (scope === undefined || !(error instanceof InvalidClientMetadataError)) throw error
		return registerClient(issuer, wanted)
	}
}

/** A client that was registered beforehand and signs its requests (RFC 7523). Throws `mcp_failed` if the key cannot be used. */
export function signedClient(client_id: string, pem: string): AuthClient {
	const authenticate = createPrivateKeyJwtAuth({
		issuer: client_id,
		subject: client_id,
		privateKey: pem,
		alg: algorithmOf(pem),
	})
	return { information: { client_id }, authenticate }
}

function algorithmOf(pem: string): string {
	let details
	try {
		const key = createPrivateKey(pem)
		details = { type: key.asymmetricKeyType, curve: key.asymmetricKeyDetails?.namedCurve }
	} catch (error) {
		throw refused('its private key is not a PEM (PKCS #8) text', error)
	}
	if (details.type === 'rsa') return 'RS256'
	const found = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }[details.curve ?? '']
	if (details.type === 'ec' && found !== undefined) return found
	throw refused(`its private key has the type ${details.type}; use RSA, or EC with P-256, P-384 or P-521`)
}

export async function authorizationUrl(
	issuer: Issuer,
	client: ClientInformation,
	{ redirect, scope, state }: { redirect: string; scope: string | undefined; state: string },
): Promise<{ url: URL; code_verifier: string }> {
	const { authorizationUrl: url, codeVerifier } = await startAuthorization(issuer.issuer, {
		...issuerOptions(issuer),
		clientInformation: client,
		redirectUrl: redirect,
		...(scope !== undefined && { scope }),
		state,
	})
	if (url.protocol !== 'https:' && url.protocol !== 'http:')
		throw refused(`its authorization endpoint begins with ${url.protocol}`)
	return { url, code_verifier: codeVerifier }
}

/** Exchanges an authorization code for tokens. */
export async function exchange(
	issuer: Issuer,
	client: AuthClient,
	{ code, code_verifier, redirect }: { code: string; code_verifier: string; redirect: string },
	fetch: FetchLike,
): Promise<Tokens> {
	return tokensOf(
		await exchangeAuthorization(issuer.issuer, {
			...issuerOptions(issuer),
			...clientOptions(client),
			authorizationCode: code,
			codeVerifier: code_verifier,
			redirectUri: redirect,
			fetchFn: fetch,
		}),
	)
}

/** Renews tokens. Returns undefined if the server no longer accepts the refresh token, so that a person must sign in again. */
export async function refresh(
	issuer: Issuer,
	client: AuthClient,
	refresh_token: string,
	fetch: FetchLike,
): Promise<Tokens | undefined> {
	try {
		const wanted = { ...issuerOptions(issuer), ...clientOptions(client), refreshToken: refresh_token, fetchFn: fetch }
		return tokensOf(await refreshAuthorization(issuer.issuer, wanted))
	} catch (error) {
		if (error instanceof InvalidGrantError) return undefined
		throw error
	}
}

/** Gets tokens for the client itself (client_credentials), without a person. */
export async function ownTokens(
	issuer: Issuer,
	client: AuthClient,
	scope: string | undefined,
	fetch: FetchLike,
): Promise<Tokens> {
	const provider: OAuthClientProvider = {
		redirectUrl: undefined,
		clientMetadata: { redirect_uris: [] },
		clientInformation: () => client.information,
		prepareTokenRequest: () => new URLSearchParams(defined({ grant_type: 'client_credentials', scope })),
		...(client.authenticate && { addClientAuthentication: client.authenticate }),
		tokens: () => undefined,
		saveTokens() {},
		redirectToAuthorization() {},
		saveCodeVerifier() {},
		codeVerifier: () => '',
	}
	return tokensOf(await fetchToken(provider, issuer.issuer, { ...issuerOptions(issuer), fetchFn: fetch }))
}

/**
 * The parameters about the authorization server and the resource, which all requests have. `resource` stays a string, which the
 * SDK sends unchanged, although its types require a URL: a URL could get an additional slash.
 */
function issuerOptions({ metadata, resource }: Issuer) {
	return defined({ metadata, resource: resource as unknown as URL | undefined })
}

function clientOptions({ information, authenticate }: AuthClient) {
	return defined({ clientInformation: information, addClientAuthentication: authenticate })
}

/** Revokes a token (RFC 7009), if the server supports that. */
export async function revoke(
	{ metadata }: Issuer,
	client: ClientInformation,
	token: string,
	fetch: FetchLike,
): Promise<void> {
	const { revocation_endpoint: endpoint } = (metadata ?? {}) as { revocation_endpoint?: string }
	if (endpoint === undefined) return
	const { client_id, client_secret } = client
	const body = new URLSearchParams(defined({ token, client_id, client_secret }))
	const response = await fetch(endpoint, { method: 'POST', body, redirect: 'error' })
	await response.body?.cancel()
}

function tokensOf({ access_token, refresh_token, scope, expires_in }: OAuthTokens): Tokens {
	const lifetime_ms = expires_in === undefined ? null : Math.min(expires_in, LONGEST_S) * 1000
	return {
		access_token,
		...defined({ refresh_token, scope }),
		expires_at: lifetime_ms && Date.now() + lifetime_ms,
		renew_at: lifetime_ms && Date.now() + lifetime_ms - Math.min(EARLY_MS, lifetime_ms / 5),
	}
}

/** Compares issuers as text, like RFC 8414, but ignores a final slash, in which servers and their documents often differ. */
export function isSame(a: string, b: string): boolean {
	return a.replace(/\/$/, '') === b.replace(/\/$/, '')
}

async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
	try {
		return await promise
	} catch (error) {
		if (isFault(error)) throw error
		return undefined
	}
}

function refused(message: string, cause?: unknown): Fault {
	return new Fault('mcp_failed', message, { cause })
}
