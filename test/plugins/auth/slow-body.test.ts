/** Requests whose token is revoked before their body is complete. */
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import { beginPost } from '../../support/slow-request.ts'

void t.test('a request is refused if its token is revoked before its body is complete', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const tokens = async (): Promise<number> => (await gateway.request('GET', '/v1/auth/tokens')).body.tokens.length
	const made = await addToken(gateway, ['tokens:admin'])
	const body = JSON.stringify({ scopes: ['*'] })
	const headers = [
		`authorization: Bearer ${made.token}`,
		'content-type: application/json',
		`content-length: ${body.length}`,
	]
	const begin = () => beginPost(t, gateway, '/v1/auth/tokens', headers, body.slice(0, 5))
	const valid = await begin()
	valid.write(body.slice(5))
	t.match(await valid.response, /^HTTP\/1\.1 201 /)
	t.equal(await tokens(), 2)

	const late = await begin()
	t.equal((await gateway.request('DELETE', `/v1/auth/tokens/${made.id}`)).status, 200)
	late.write(body.slice(5))
	t.match(await late.response, /^HTTP\/1\.1 401 [^]*www-authenticate: Bearer[^]*the token is no longer valid/i)
	t.equal(await tokens(), 2, 'no token was created')
})
