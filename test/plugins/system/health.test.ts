import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import type { GatewayStatus, PluginStatus } from '../../../core/status.ts'
import { healthOf, isReady, linesOf } from '../../../plugins/system/health.ts'
import { addToken } from '../../support/add.ts'
import { send, startGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { openStream } from '../../support/sse.ts'

void t.test('a running gateway', async (t) => {
	const gateway = await startGateway({ env: { SVC_LOOPBACK: 'no' } })
	t.teardown(() => gateway.stop())

	await t.test('is alive', async (t) => {
		const { status, body, headers } = await gateway.request('GET', '/healthz')
		t.strictSame([status, body], [200, 'ok'])
		t.match(headers.get('content-type'), 'text/plain')
	})
	await t.test('is ready, in one word or with a line per check', async (t) => {
		const brief = await gateway.request('GET', '/readyz')
		t.strictSame([brief.status, brief.body], [200, 'ok'])
		const { status, body } = await gateway.request('GET', '/readyz?verbose')
		t.equal(status, 200)
		t.match(body, /^\[\+\]gateway ready\n\[\+\]store ok\n\[\+\]config in force\n\[\+\]plugins \d+ running\nok\n$/)
		t.equal(
			(await gateway.request('GET', '/readyz?verbose=1&t=17')).body,
			body,
			'other parameters of a probe are ignored',
		)
	})
	await t.test('reports its health as JSON', async (t) => {
		const { status, body } = await gateway.request('GET', '/v1/health')
		t.equal(status, 200)
		t.match(body, { status: 'ok', version: /^\d/, generation: 1, uptime_s: Number })
		t.match(body.checks, [
			{ name: 'gateway', ok: true, message: 'ready' },
			{ name: 'store' },
			{ name: 'config' },
			{ name: 'plugins' },
		])
	})
})

void t.test('a refused change of gateway.yaml degrades the gateway, which stays ready', async (t) => {
	const gateway = await startGateway({ config: 'runs: {max_waiting: 7}\n' })
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	const file = join(gateway.home, 'config/gateway.yaml')

	const rejected = stream.waitFor('config.rejected')
	writeFileSync(file, 'runs: {max_wating: 7}\n')
	await rejected
	const { status, body } = await gateway.request('GET', '/readyz?verbose')
	t.equal(status, 200)
	t.match(body, /\n\[-\]config the last change is refused, the last good configuration stays in force: .*max_wating/)
	t.match(body, /\ndegraded\n$/)
	const { body: health } = await gateway.request('GET', '/v1/health')
	t.equal(health.status, 'degraded')

	const reloaded = stream.waitFor('config.reloaded')
	writeFileSync(file, 'runs: {max_waiting: 8}\n')
	await reloaded
	t.equal((await gateway.request('GET', '/readyz')).body, 'ok')
})

void t.test('a draining gateway is alive but not ready', async (t) => {
	const { promise: called, resolve } = Promise.withResolvers<ServerResponse>()
	const model = await listenOnLoopback(createServer((_request, response) => resolve(response)))
	t.teardown(() => model.stop())
	const gateway = await startGateway({
		config: `server: {shutdown_grace_s: 60}\nproviders: {slow: {kind: openai, base_url: "${model.url}/v1", model: m}}\n`,
	})
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'hello' } })
	const response = await called
	const stopped = gateway.stop()
	const ready = await send(`${gateway.url}/readyz`, 'GET')
	t.strictSame([ready.status, ready.body], [503, 'draining'])
	const verbose = await send(`${gateway.url}/readyz?verbose`, 'GET')
	t.match(verbose.body, /^\[-\]gateway draining\n/)
	const health = await send(`${gateway.url}/v1/health`, 'GET')
	t.match(health, { status: 503, body: { status: 'draining' } })
	t.equal((await send(`${gateway.url}/healthz`, 'GET')).status, 200)
	response.writeHead(400).end() // ends the run
	await stopped
})

void t.test('every problem degrades the gateway, but only starting and draining make it not ready', async (t) => {
	const plugin = (name: string, last_error: string | null): PluginStatus => ({
		name,
		version: null,
		state: last_error === null ? 'running' : 'failed',
		last_error,
		generation: 1,
		source: null,
		since: null,
		contract: null,
	})
	const gateway = (change: Partial<GatewayStatus>): GatewayStatus => ({
		version: '1',
		home: '/home',
		started_at: new Date().toISOString(),
		state: () => 'ready',
		generation: () => 1,
		plugins: () => [plugin('auth', null)],
		holdings: () => null,
		reload: async () => {},
		gateways: async () => [],
		lentThreads: () => null,
		configError: () => null,
		storeTrouble: () => null,
		storeSpace: () => null,
		dataFormat: () => 2,
		storeCluster: () => null,
		forwardedRequests: () => null,
		openRequests: () => 0,
		uncaughtErrors: () => 0,
		publicUrl: () => null,
		url: () => null,
		...change,
	})
	const healthWith = (change: Partial<GatewayStatus>): [status: string, ready: boolean] => {
		const health = healthOf(gateway(change), true)
		return [health.status, isReady(health)]
	}
	t.strictSame(healthWith({}), ['ok', true])
	t.strictSame(healthWith({ state: () => 'starting' }), ['starting', false])
	t.strictSame(healthWith({ state: () => 'draining', storeTrouble: () => 'full' }), ['draining', false])
	t.strictSame(healthWith({ storeTrouble: () => 'the disk is full' }), ['degraded', true])
	t.strictSame(healthWith({ uncaughtErrors: () => 1 }), ['degraded', true])
	t.strictSame(healthWith({ configError: () => 'line 3' }), ['degraded', true])
	t.strictSame(healthWith({ plugins: () => [plugin('auth', null), plugin('shop', 'SECRET')] }), ['degraded', true])

	const bad = gateway({
		storeTrouble: () => 'the disk is full',
		configError: () => 'line 3\n[+]store ok',
		plugins: () => [plugin('auth', null), plugin('shop', 'SECRET')],
	})
	const lines = linesOf(healthOf(bad, true))
	t.match(lines, '\n[-]store refuses writes: the disk is full\n')
	t.match(lines, '\n[-]plugins 1 running, problems with shop')
	t.notMatch(lines, /SECRET/, 'only GET /v1/plugins has the errors of plugins')
	t.notMatch(lines, /\n\[\+\]store/, 'a message cannot forge another check')
	t.notMatch(
		linesOf(healthOf(bad, false)),
		/disk|line 3|shop|SECRET/,
		'callers without agents:read see only which checks fail',
	)
})

void t.test('responses without a valid token contain no path, setting or secret', async (t) => {
	const files = { 'plugins/shopkeeper/index.js': 'export default {' }
	const config = 'auth_mode: token\nplugins: {shopkeeper: true}\n'
	const gateway = await startGateway({ config, files })
	t.teardown(() => gateway.stop())
	const all = await addToken(gateway, ['*'])
	const createToken = async (scope: string): Promise<string> =>
		(await addToken(gateway, [scope], { by: all.token })).token
	const [reader, runner] = [await createToken('agents:read'), await createToken('runs:write')]
	const stream = await openStream(gateway.url, { token: all.token })
	t.teardown(() => stream.close())
	const rejected = stream.waitFor('config.rejected')
	const file = join(gateway.home, 'config/gateway.yaml')
	writeFileSync(file, `${config}providers: {house: {kind: openai, api_key: hunter2-hunter2, base_url: nowhere}}\n`)
	await rejected

	const details = /gateway\.yaml|svc-test|\/tmp|providers|house|hunter2|shopkeeper/
	const paths = [
		'/healthz',
		'/readyz',
		'/readyz?verbose',
		'/v1/health',
		'/v1/plugins',
		'/metrics',
		'/v1/agents',
		'/nowhere',
	]
	const foreign = { host: 'gateway.example' }
	for (const path of paths) {
		for (const options of [{}, { headers: foreign }, { token: 'svc_wrong' }, { token: runner }]) {
			const { body, headers } = await gateway.request('GET', path, options)
			const text = JSON.stringify([body, Object.fromEntries(headers)])
			t.notMatch(text, details, `${path} ${JSON.stringify(options)}`)
		}
	}
	const verbose = await gateway.request('GET', '/readyz?verbose')
	t.match(
		verbose.body,
		/\n\[-\]config the last change is refused.*agents:read.*\n\[-\]plugins \d+ running, problems with 1 .*\ndegraded\n$/,
	)
	for (const token of [reader, all.token]) {
		t.match(
			(await gateway.request('GET', '/readyz?verbose', { token })).body,
			/providers\.house\.base_url.*shopkeeper/s,
		)
		t.match(JSON.stringify((await gateway.request('GET', '/v1/health', { token })).body), /providers\.house\.base_url/)
	}
})
