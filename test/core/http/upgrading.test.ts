/** Responses of the gateway while its home is upgraded. */
import t from 'tap'
import type { Gateway } from '../../../core/gateway.ts'
import { openProgress } from '../../../core/upgrade/progress.ts'
import { version } from '../../../core/version.ts'
import { svcFor } from '../../support/cli.ts'
import { startHost } from '../../support/host.ts'
import { eventually } from '../../support/wait.ts'

const plugin = `export default { name: 'late', http(server) { server.route({ method: 'GET', path: '/late', handler: () => 'served' }) } }`

void t.test('probes report the progress of the upgrade, and nothing else is served until it is done', async (t) => {
	let ms = 0
	const progress = openProgress(() => ms)
	const done = Promise.withResolvers<void>()
	let gateway: Gateway | undefined
	const starting = startHost(
		t.testdir(),
		{ 'late/index.js': plugin },
		{ late: {} },
		{
			upgrade: { progress: () => progress.now(), run: () => done.promise },
			made: (one) => (gateway = one),
		},
	)
	const url = await eventually(() => gateway?.status.url('main') ?? '')
	const ask = async (path: string) => {
		const response = await fetch(url + path)
		return { status: response.status, retry: response.headers.get('retry-after'), body: await response.text() }
	}
	t.equal(gateway?.status.state(), 'migrating')
	t.match(await ask('/healthz'), { status: 200, body: 'ok' })
	t.match(await ask('/readyz?verbose'), { status: 503, body: '[-]gateway migrating: 0 % (backup)\nmigrating\n' })

	progress.reached(0, 1_000, 'texts')
	ms = 10_000
	progress.reached(250, 1_000, 'texts')
	t.match(await ask('/readyz?verbose'), {
		status: 503,
		retry: '30',
		body: '[-]gateway migrating: 25 % (texts), about 30 s left\nmigrating\n',
	})
	t.match(await ask('/readyz'), { status: 503, body: 'migrating' })
	const health = await ask('/v1/health')
	t.equal(health.status, 503)
	t.match(JSON.parse(health.body), {
		status: 'migrating',
		version,
		checks: [{ name: 'gateway', ok: false, message: 'migrating: 25 % (texts), about 30 s left' }],
	})
	const other = await ask('/late')
	t.match([other.status, other.retry], [503, '30'])
	t.match(JSON.parse(other.body), { code: 'unavailable', message: /upgrades its home: 25 %/ })
	for (const path of ['//', '//[', '/\\\\:'])
		t.equal((await fetch(url + path, { signal: AbortSignal.timeout(5_000) })).status, 503, `${path} is answered`)

	const status = await svcFor({ home: t.testdirName, url })(['status'])
	t.equal(status.code, 1)
	t.match(status.stdout, /^migrating · .*\ngateway: migrating: 25 % \(texts\), about 30 s left/)

	done.resolve()
	const host = await starting
	t.teardown(() => host.stop())
	t.equal(host.gateway.status.url('main'), url, 'the socket stays open')
	t.match(await ask('/late'), { status: 200, body: 'served' })
})
