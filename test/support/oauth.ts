/** An MCP server that requires a login, with a certified authorization server (oidc-provider) and a browser. */
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import Provider from 'oidc-provider'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import type { Test } from 'tap'
import { listenOnLoopback, unlessReset } from './loopback.ts'

export interface ProtectedServer {
	/** The MCP server's URL. */
	url: string
	issuer: string
	provider: Provider
	/** Requests to the token endpoint, by grant type. */
	grants: string[]
	/** The maximum number of concurrent requests to the token endpoint so far. */
	readonly mostAtOnce: number
	/** The access token of each request, the status of its answer, and its time in milliseconds since 1970. */
	arrived: { token: string; status: number; at: number }[]
	/** Called before the token endpoint sends an answer. */
	beforeTokens: (() => Promise<unknown>) | undefined
}

export interface ProtectedOptions {
	/** Lifetime of an access token in seconds. Default 3,600. */
	ttl_s?: number
	/** Default `mcp:use`. */
	scopes?: string[]
	configuration?: Configuration
	/** The scope required for tool calls; without it they get 403. */
	scopeOfCalls?: string
}

const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })

/** The client for signing in to the console. */
export function consoleClient(redirect: string, client_secret = 'secret'): ClientMetadata {
	return {
		client_id: 'console',
		client_secret,
		token_endpoint_auth_method: 'client_secret_basic',
		// A native client may use any loopback port.
		application_type: redirect.startsWith('https:') ? 'web' : 'native',
		redirect_uris: [redirect],
	}
}

export async function startProtectedServer(
	t: Pick<Test, 'teardown'>,
	options: ProtectedOptions = {},
): Promise<ProtectedServer> {
	const { ttl_s = 3600, scopes = ['mcp:use'], configuration, scopeOfCalls } = options
	const authorization = createServer()
	const issuer = await listen(t, authorization)
	const resources = createServer()
	const url = `${await listen(t, resources)}/mcp`
	let atOnce = 0
	const found: ProtectedServer & { mostAtOnce: number } = {
		url,
		issuer,
		provider: new Provider(issuer, { ...configurationFor({ url, ttl_s, scopes }), ...configuration }),
		grants: [],
		mostAtOnce: 0,
		arrived: [],
		beforeTokens: undefined,
	}
	const { provider } = found
	provider.on('grant.success', ({ oidc }) => found.grants.push(String(oidc.params?.grant_type)))
	provider.use(async (ctx, next) => {
		if (ctx.path !== '/token') return next()
		found.mostAtOnce = Math.max(found.mostAtOnce, ++atOnce)
		await next()
		await found.beforeTokens?.()
		atOnce--
	})
	// The user consents to everything.
	const handle = provider.callback()
	authorization.on('request', (request, response) => {
		if (!request.url?.startsWith('/interaction/')) return void handle(request, response)
		void (async () => {
			const { prompt, params } = await provider.interactionDetails(request, response)
			if (prompt.name === 'login')
				return provider.interactionFinished(request, response, { login: { accountId: 'grace' } })
			const grant = new provider.Grant({ accountId: 'grace', clientId: String(params.client_id) })
			grant.addOIDCScope('openid profile email offline_access')
			grant.addResourceScope(url, String(params.scope))
			return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
		})()
	})

	resources.on('request', (request, response) => {
		void (async () => {
			let text = ''
			for await (const part of request.setEncoding('utf8')) text += String(part)
			response.setHeader('content-type', 'application/json')
			const base = new URL(url).origin
			if (request.url === '/.well-known/oauth-protected-resource/mcp')
				return response.end(
					JSON.stringify({ resource: url, authorization_servers: [issuer], scopes_supported: scopes }),
				)
			const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? []
			const known = token === '' ? undefined : await provider.AccessToken.find(token)
			const own = token === '' || known ? undefined : await provider.ClientCredentials.find(token)
			const granted = (known ?? own)?.scope?.split(' ') ?? []
			const message = text === '' ? {} : (JSON.parse(text) as { id?: number; method?: string; params?: Params })
			const isShort = message.method === 'tools/call' && scopeOfCalls !== undefined && !granted.includes(scopeOfCalls)
			const status = !(known ?? own) ? 401 : isShort ? 403 : 200
			found.arrived.push({ token, status, at: Date.now() })
			if (status !== 200) {
				const why = isShort ? `error="insufficient_scope", scope="${scopeOfCalls}", ` : ''
				response.setHeader(
					'www-authenticate',
					`Bearer ${why}resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`,
				)
				return response.writeHead(status).end('{}')
			}
			if (request.method !== 'POST') return response.writeHead(405).end()
			if (message.id === undefined) return response.writeHead(202).end()
			response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: resultOf(message.method, message.params) }))
		})().catch(unlessReset)
	})
	return found
}

/** Follows redirects as a browser does, up to the first address that begins with `until`, and returns it. */
export async function browse(address: string, until: string): Promise<string> {
	const cookies = new Map<string, string>()
	for (let at = new URL(address), hops = 0; hops < 20; hops++) {
		const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
		const response = await fetch(at, { redirect: 'manual', headers: { cookie } })
		for (const line of response.headers.getSetCookie()) {
			const [pair = ''] = line.split(';')
			cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1))
		}
		const location = response.headers.get('location')
		if (location === null) throw new Error(`${at.href} answered ${response.status}: ${await response.text()}`)
		await response.body?.cancel()
		at = new URL(location, at)
		if (at.href.startsWith(until)) return at.href
	}
	throw new Error('too many redirects')
}

function configurationFor({ url, ttl_s, scopes }: { url: string; ttl_s: number; scopes: string[] }): Configuration {
	return {
		jwks: { keys: [{ ...key, use: 'sig', alg: 'ES256', kid: 'one' }] },
		cookies: { keys: ['test'] },
		clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
		features: {
			devInteractions: { enabled: false },
			registration: { enabled: true },
			revocation: { enabled: true },
			clientCredentials: { enabled: true },
			resourceIndicators: {
				enabled: true,
				useGrantedResource: () => true,
				getResourceServerInfo: () => ({
					scope: scopes.join(' '),
					audience: url,
					accessTokenTTL: ttl_s,
					accessTokenFormat: 'opaque',
				}),
			},
		},
		interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
		issueRefreshToken: async () => true,
		rotateRefreshToken: true,
		pkce: { required: () => true },
		ttl: { AccessToken: ttl_s, ClientCredentials: ttl_s, Session: 600, Interaction: 600, Grant: 600 },
		findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
		responseTypes: ['code'],
		clientDefaults: { id_token_signed_response_alg: 'ES256' },
	}
}

async function listen(t: Pick<Test, 'teardown'>, server: Server): Promise<string> {
	const { url, stop } = await listenOnLoopback(server)
	server.unref()
	t.teardown(stop)
	return url
}

interface Params {
	protocolVersion?: string
	arguments?: { text?: string }
}

function resultOf(method = '', params: Params = {}): object {
	switch (method) {
		case 'initialize':
			return {
				protocolVersion: params.protocolVersion,
				capabilities: { tools: {} },
				serverInfo: { name: 'protected', version: '1.0.0' },
			}
		case 'tools/list':
			return { tools: [{ name: 'echo', description: 'Says it again.', inputSchema: { type: 'object' } }] }
		case 'tools/call':
			return { content: [{ type: 'text', text: params.arguments?.text ?? '' }] }
		default:
			return {}
	}
}
