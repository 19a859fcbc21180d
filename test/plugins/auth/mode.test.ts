/** Token mode requires a token that can administer the gateway. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'

const write = (home: string, text: string): void => writeFileSync(join(home, 'config/gateway.yaml'), text)

void t.test('the change to token mode is refused while no valid token could administer the gateway', async (t) => {
	const gateway = await startGateway({ config: 'auth_mode: loopback\n' })
	t.teardown(() => gateway.stop())
	const change = (): Promise<unknown> => gateway.running.gateway.reload()
	const refused = { code: 'config_invalid', message: /:1:12: auth_mode: .*svc tokens create --scope "\*".*svc login/ }
	write(gateway.home, 'auth_mode: token\n')
	await t.rejects(change(), refused, 'there is no token')
	await addToken(gateway, ['agents:read'])
	await t.rejects(change(), refused, 'the only token lacks the scope')
	// The gateway also watches the file: once such a token exists, it would apply the change by itself.
	write(gateway.home, 'auth_mode: loopback\n')
	await change()
	const { id } = await addToken(gateway, ['*'])
	t.equal((await gateway.request('DELETE', `/v1/auth/tokens/${id}`)).status, 200)
	write(gateway.home, 'auth_mode: token\n')
	await t.rejects(change(), refused, 'the token was revoked')
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'loopback mode is still active')
	t.notOk(gateway.running.gateway.status.plugins().some(({ last_error }) => last_error !== null))

	const admin = await addToken(gateway, ['tokens:admin'])
	await change()
	t.equal((await gateway.request('GET', '/v1/agents')).status, 401)
	t.equal((await gateway.request('GET', '/v1/auth/tokens', { token: admin.token })).status, 200)

	t.equal((await gateway.request('DELETE', `/v1/auth/tokens/${admin.id}`, { token: admin.token })).status, 200)
	write(gateway.home, 'auth_mode: token\nserver: {allowed_hosts: [gateway.lan]}\n')
	await change()
	t.equal(gateway.running.gateway.status.configError(), null, 'only the change of the mode is refused')
	write(gateway.home, 'auth_mode: loopback\n')
	await change()
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'the file restores access')
})

void t.test('a start in token mode without such a token succeeds, and reports how to regain access', async (t) => {
	const home = makeHome({ config: 'auth_mode: loopback\n' })
	const first = await startGateway({ home })
	const reader = await addToken(first, ['agents:read', 'events:read'])
	await first.stop()
	write(home, 'auth_mode: token\n')
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	t.equal((await gateway.request('GET', '/v1/agents', { token: reader.token })).status, 200)
	t.equal((await gateway.request('GET', '/v1/agents')).status, 401)
	t.match(
		gateway.running.gateway.status.plugins().find(({ name }) => name === 'auth'),
		{
			state: 'running',
			last_error: /no valid token can administer the gateway; set auth_mode: loopback/,
		},
	)
})

void t.test('if no token was ever created, token mode accepts the creation of the first one', async (t) => {
	const gateway = await startGateway({ config: 'auth_mode: token\n' })
	t.teardown(() => gateway.stop())
	const { token } = await addToken(gateway, ['*'])
	t.equal((await gateway.request('GET', '/v1/agents', { token })).status, 200)
})
