/**
 * OAuth as the MCP specification of 2025-11-25 uses it, by the official SDK's functions, with the checks that these leave to
 * their caller. Loaded with the first server that wants a login: like the SDK's client, it takes long to load.
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

/** Where the tokens of a server come from. Plain data, at most a few documents of 64 KiB. */
export interface Issuer {
	/** The authorization server's address, as the MCP server named it. */
	issuer: string
	/** Absent: a server of the specification of 2025-03-26, with its endpoints at fixed paths. */
	metadata?: AuthorizationServerMetadata
	/** What the tokens are for (RFC 8707), as the server calls itself. */
	resource?: string
	/** The scopes that the server lists. */
	scopes?: string[]
}

export type ClientInformation = OAuthClientInformationMixed

/** A client as it authenticates. */
export interface AuthClient {
	information: ClientInformation
	authenticate?: AddClientAuthentication
}

/** What an answer with 401 or 403 says. */
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
	/** When they end, and when they are to be renewed; milliseconds since 1970. Null if the server does not say. */
	expires_at: number | null
	renew_at: number | null
}

/** A lifetime beyond this counts as this: dates end somewhere. */
const LONGEST_S = 10 * 366 * 24 * 3600
/** How long before its end a token is renewed, or a fifth of its lifetime if that is less. */
const EARLY_MS = 30_000

export function challengeOf(response: Response): Challenge {
	const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response)
	return defined({ metadata_url: resourceMetadataUrl, scope, error })
}

/**
 * Finds the authorization server of an MCP server. Returns undefined if its documents name none, unless it uses OAuth for
 * certain: then the endpoints are those of the specification of 2025-03-26. Throws a Fault if they cannot be trusted: another
 * resource, another issuer, no PKCE; and what `fetch` throws.
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

/** The resource's own text: exact comparison at the authorization server must not fail because of a slash. */
async function resourceOf(
	server: URL,
	about: Awaited<ReturnType<typeof discoverOAuthProtectedResourceMetadata>>,
): Promise<string> {
	try {
		await selectResourceURL(server, {} as OAuthClientProvider, about)
		return about.resource
	} catch (error) {
		throw refused(`its metadata is about another resource, ${about.resource}`, error)
	}
}

/** Registers a client (RFC 7591). Throws a Fault that names `redirect` where the server does not register clients. */
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
		// Some know the scopes of the resources that they protect only in requests for tokens.
		if (scope === undefined || !(error instanceof InvalidClientMetadataError)) throw error
		return registerClient(issuer, wanted)
	}
}

/** A client that was registered beforehand and signs its requests (RFC 7523). Throws a Fault for an unusable key. */
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
	throw refused(`its private key is of the kind ${details.type}; use RSA, or EC with P-256, P-384 or P-521`)
}

export async function authorizationUrl(
	issuer: Issuer,
	client: ClientInformation,
	{ redirect, scope, state }: { redirect: string; scope: string | undefined; state: string },
): Promise<{ url: URL; code_verifier: string }> {
	const { authorizationUrl: url, codeVerifier } = await startAuthorization(issuer.issuer, {
		...placeOf(issuer),
		clientInformation: client,
		redirectUrl: redirect,
		...(scope !== undefined && { scope }),
		state,
	})
	if (url.protocol !== 'https:' && url.protocol !== 'http:')
		throw refused(`its authorization endpoint begins with ${url.protocol}`)
	return { url, code_verifier: codeVerifier }
}

/** Redeems a code. */
export async function exchange(
	issuer: Issuer,
	client: AuthClient,
	{ code, code_verifier, redirect }: { code: string; code_verifier: string; redirect: string },
	fetch: FetchLike,
): Promise<Tokens> {
	return tokensOf(
		await exchangeAuthorization(issuer.issuer, {
			...placeOf(issuer),
			...identityOf(client),
			authorizationCode: code,
			codeVerifier: code_verifier,
			redirectUri: redirect,
			fetchFn: fetch,
		}),
	)
}

/** Undefined if the server no longer accepts the refresh token: a person must sign in again. */
export async function refresh(
	issuer: Issuer,
	client: AuthClient,
	refresh_token: string,
	fetch: FetchLike,
): Promise<Tokens | undefined> {
	try {
		const wanted = { ...placeOf(issuer), ...identityOf(client), refreshToken: refresh_token, fetchFn: fetch }
		return tokensOf(await refreshAuthorization(issuer.issuer, wanted))
	} catch (error) {
		if (error instanceof InvalidGrantError) return undefined
		throw error
	}
}

/** Tokens for the agent itself, without a person. */
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
	return tokensOf(await fetchToken(provider, issuer.issuer, { ...placeOf(issuer), fetchFn: fetch }))
}

/**
 * What each request says of where the tokens come from, and what they are for. The SDK passes `resource` on as text, although
 * the types of `fetchToken` want a URL, which would add a slash.
 */
function placeOf({ metadata, resource }: Issuer) {
	return defined({ metadata, resource: resource as unknown as URL | undefined })
}

function identityOf({ information, authenticate }: AuthClient) {
	return defined({ clientInformation: information, addClientAuthentication: authenticate })
}

/** Revokes a token (RFC 7009), where the server offers that. */
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

/** RFC 8414 compares issuers as text; a slash at the end is the only difference that servers and their documents have. */
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
