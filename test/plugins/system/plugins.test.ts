import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { contractVersion } from '../../../core/host/contract-version.ts'
import { addToken } from '../../support/add.ts'
import { endedRun } from '../../support/ended-run.ts'
import { startGateway } from '../../support/gateway.ts'
import { assertError } from '../../support/error-response.ts'

void t.test('GET /v1/plugins shows running and failed plugins', async (t) => {
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
	const byName = Object.fromEntries(body.map((plugin: { name: string }) => [plugin.name, plugin]))
	t.match(byName.clock, { version: '1.2.3', state: 'running', last_error: null, generation: 1, contract: null })
	t.match(byName.broken, { state: 'failed', last_error: /no such luck/, generation: null })
	for (const name of ['agents', 'auth', 'events', 'models', 'runs', 'system']) {
		t.match(byName[name], { state: 'running', last_error: null, generation: 1 }, name)
	}
	t.notOk(JSON.stringify(body.filter(({ state }: { state: string }) => state === 'running')).includes(gateway.home))
})

void t.test('GET /v1/plugins needs agents:read', async (t) => {
	const gateway = await startGateway({ env: { SVC_LOOPBACK: 'false' } })
	t.teardown(() => gateway.stop())
	assertError(t, await gateway.request('GET', '/v1/plugins'), { status: 401, code: 'unauthorized' })
	const { token } = await addToken(gateway, ['agents:read'])
	t.equal((await gateway.request('GET', '/v1/plugins', { token })).status, 200)
})

void t.test('GET /v1/plugins shows what each plugin holds', async (t) => {
	const gateway = await startGateway({
		config: 'plugins: {clock: true}\n',
		files: {
			'plugins/clock/index.js': `export default {
				name: 'clock',
				contract: '${contractVersion}',
				start(ctx) {
					ctx.primitive({ name: 'clock.now', description: 'The time.', parameters: { type: 'object' }, run: async () => '' })
					ctx.on('run.completed', () => {})
					ctx.on('run.completed', () => {})
					ctx.every(1000, () => {})
					ctx.after(3_600_000, () => {})
					ctx.extend('metrics', () => [])
					ctx.defer(() => {}, 'the pendulum')
				},
				http(server) {
					server.route({ method: 'GET', path: '/v1/clock', options: { auth: false }, handler: () => 'noon' })
				},
			}`,
		},
	})
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request('GET', '/v1/plugins')
	const clock = body.find(({ name }: { name: string }) => name === 'clock')
	t.match(clock, { built_in: false, contract: contractVersion, last_error: null })
	t.strictSame(clock.holds, {
		routes: ['GET /v1/clock'],
		tools: ['clock.now'],
		events: ['run.completed'],
		extends: ['metrics'],
		timers: 2,
		resources: ['the pendulum'],
	})
	const agents = body.find(({ name }: { name: string }) => name === 'agents')
	t.equal(agents.built_in, true)
	t.ok(agents.holds.routes.includes('POST /v1/agents'))
})

void t.test('POST /v1/plugins/{name}/reload restarts a plugin', async (t) => {
	const counting = 'globalThis.clockStarts = (globalThis.clockStarts ?? 0) + 1'
	const gateway = await startGateway({
		config: 'plugins: {clock: true}\n',
		files: { 'plugins/clock/index.js': `export default { name: 'clock', start() { ${counting} } }` },
	})
	t.teardown(() => gateway.stop())
	const starts = (): unknown => (globalThis as { clockStarts?: number }).clockStarts
	t.equal(starts(), 1)
	const { status, body } = await gateway.request('POST', '/v1/plugins/clock/reload')
	t.equal(status, 200)
	t.match(body, { name: 'clock', state: 'running', generation: 2 })
	t.equal(starts(), 2)
	assertError(t, await gateway.request('POST', '/v1/plugins/no-such/reload'), { status: 404, code: 'not_found' })
	// Nothing has changed since.
	await gateway.running.gateway.reload()
	t.equal(gateway.running.gateway.status.generation(), 2)

	writeFileSync(join(gateway.home, 'plugins/clock/index.js'), "throw new Error('no such luck')")
	const broken = await gateway.request('POST', '/v1/plugins/clock/reload')
	t.match(broken.body, { state: 'running', last_error: /no such luck/, generation: 2 })

	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'plugins: {clock: true, runs: {limits: {steps: many}}}\n')
	assertError(t, await gateway.request('POST', '/v1/plugins/clock/reload'), { status: 400, code: 'config_invalid' })
	t.equal(starts(), 2)
})

void t.test('a refused reload does not start the plugin later', async (t) => {
	const counting = 'globalThis.sundialStarts = (globalThis.sundialStarts ?? 0) + 1'
	const config = 'plugins: {sundial: true}\n'
	const gateway = await startGateway({
		config,
		files: { 'plugins/sundial/index.js': `export default { name: 'sundial', start() { ${counting} } }` },
	})
	t.teardown(() => gateway.stop())
	const file = join(gateway.home, 'config/gateway.yaml')
	writeFileSync(file, `${config}runs: {limits: {steps: many}}\n`)
	const answer = await gateway.request('POST', '/v1/plugins/sundial/reload')
	assertError(t, answer, { status: 400, code: 'config_invalid' })
	writeFileSync(file, config)
	await gateway.running.gateway.reload()
	t.equal((globalThis as { sundialStarts?: number }).sundialStarts, 1)
})

void t.test('every built-in plugin can be restarted while runs are in progress', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const names = (await gateway.request('GET', '/v1/plugins')).body.map(({ name }: { name: string }) => name)
	for (const name of names) {
		const prompt = `/tool memory.stm_write ${JSON.stringify({ key: name, value: 'kept' })}`
		const started = await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt } })
		const { status, body } = await gateway.request('POST', `/v1/plugins/${name}/reload`)
		t.equal(status, 200, name)
		t.match(body, { name, state: 'running', last_error: null })
		t.equal((await endedRun(gateway.url, started.body.run_id)).status, 'completed', name)
	}
})

void t.test('only callers with the scope * can restart plugins', async (t) => {
	const gateway = await startGateway({ env: { SVC_LOOPBACK: 'false' } })
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request('POST', '/v1/auth/tokens', {
		body: { scopes: ['agents:read', 'agents:write'] },
	})
	const answer = await gateway.request('POST', '/v1/plugins/agents/reload', { token: body.token })
	assertError(t, answer, { status: 403, code: 'forbidden' })
})

void t.test('GET /v1/cluster without a cluster shows this gateway', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request('GET', '/v1/cluster')
	t.match(body, { in_cluster: false, servers: [], leader: null, gateways: [{ works: true }] })
	t.equal(body.gateways[0].format, body.data_format)
})
