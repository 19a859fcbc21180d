import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { refused } from '../../support/refused.ts'

void t.test('GET /v1/plugins shows what runs, and why something does not', async (t) => {
	const gateway = await startGateway({
		config: 'plugins: {clock: true, broken: true}\n',
		files: {
			'plugins/clock/index.js': "export default { name: 'clock', version: '1.2.3' }",
			'plugins/broken/index.js': "throw new Error('no such luck')",
		},
	})
	t.teardown(() => gateway.stop())
	const { status, body } = await gateway.request('GET', '/v1/plugins')
	t.equal(status, 200)
	const byName = Object.fromEntries(body.map((one: { name: string }) => [one.name, one]))
	t.strictSame(byName.clock, { name: 'clock', version: '1.2.3', state: 'running', last_error: null, generation: 1 })
	t.match(byName.broken, { state: 'failed', last_error: /no such luck/, generation: null })
	for (const name of ['agents', 'auth', 'events', 'models', 'runs', 'system']) {
		t.match(byName[name], { state: 'running', last_error: null, generation: 1 }, name)
	}
	t.notOk(JSON.stringify(body.filter((one: { state: string }) => one.state === 'running')).includes(gateway.home))
})

void t.test('GET /v1/plugins needs agents:read', async (t) => {
	const gateway = await startGateway({ env: { SVC_LOOPBACK: 'false' } })
	t.teardown(() => gateway.stop())
	refused(t, await gateway.request('GET', '/v1/plugins'), { status: 401, code: 'unauthorized' })
	const { body } = await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['agents:read'] } })
	t.equal((await gateway.request('GET', '/v1/plugins', { token: body.token })).status, 200)
})
