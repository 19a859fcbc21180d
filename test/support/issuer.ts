/** An OpenID Connect provider that signs any access token for a test. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Test } from 'tap'

export const AUDIENCE = 'https://agents.example.com'

export type Pair = Awaited<ReturnType<typeof generateKeyPair>>

/** An issuer whose keys the test controls: a certified provider does not sign invalid tokens. */
export async function startIssuer(t: Test) {
	const keys = new Map<string, Pair>([['one', await generateKeyPair('ES256', { extractable: true })]])
	const state = { isDown: false, reads: 0 }
	const server = createServer((request, response) => {
		void (async () => {
			if (state.isDown) return response.writeHead(500).end()
			response.setHeader('content-type', 'application/json')
			if (request.url?.startsWith('/.well-known/'))
				return response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }))
			state.reads++
			const all = await Promise.all(
				[...keys].map(async ([kid, { publicKey }]) => ({
					...(await exportJWK(publicKey)),
					kid,
					alg: 'ES256',
					use: 'sig',
				})),
			)
			response.end(JSON.stringify({ keys: all }))
		})()
	})
	server.listen(0, '127.0.0.1')
	await once(server, 'listening')
	t.teardown(() => server.close())
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
	const sign = async (
		payload: Record<string, unknown> = {},
		header: { kid?: string; typ?: string } = {},
	): Promise<string> => {
		const { kid = 'one', typ = 'at+jwt' } = header
		const { privateKey } = keys.get(kid) ?? (await generateKeyPair('ES256'))
		const now = Math.floor(Date.now() / 1000)
		return new SignJWT({ iss: url, aud: AUDIENCE, sub: 'grace', iat: now, exp: now + 3600, ...payload })
			.setProtectedHeader({ alg: 'ES256', kid, typ })
			.sign(privateKey)
	}
	return { url, keys, sign, state }
}
