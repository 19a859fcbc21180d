/** GET /: the page at the address of the gateway. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

void t.test('the front page', async (t) => {
	const gateway = await startGateway({ config: 'plugins: {console: false}\n', env: { SVC_LOOPBACK: 'off' } })
	t.teardown(() => gateway.stop())
	const browser = { accept: 'text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8' }
	const page = await gateway.request<string>('GET', '/', { headers: browser })

	await t.test('is public, states the health of the gateway, and links to the reference', async (t) => {
		t.equal(page.status, 200)
		t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
		t.match(page.body, /gateway for autonomous agents\. It is healthy\./)
		t.strictSame(
			[...page.body.matchAll(/<a href="([^"]+)"/g)].map(([, address]) => address),
			['/docs'],
		)
		t.equal((await gateway.request('GET', '/docs')).status, 200)
		const head = await fetch(`${gateway.url}/`, { method: 'HEAD' })
		t.equal(head.status, 200)
	})

	await t.test('reveals neither version nor paths', async (t) => {
		const { version } = (await gateway.request('GET', '/v1/health')).body
		for (const text of [version, gateway.home, 'generation', 'plugins'])
			t.notOk(page.body.includes(text), `the page does not contain ${text}`)
	})

	await t.test('can load nothing but its own style', async (t) => {
		const style = /<style>([^]*?)<\/style>/.exec(page.body)?.[1] ?? ''
		const hash = createHash('sha256').update(style).digest('base64')
		t.strictSame(page.headers.get('content-security-policy')?.split('; '), [
			"default-src 'none'",
			`style-src 'sha256-${hash}'`,
			'img-src data:',
			"base-uri 'none'",
			"form-action 'none'",
			"frame-ancestors 'none'",
		])
		t.notMatch(page.body, /<script|\son\w+=|style=/)
	})

	await t.test('is JSON for clients that accept it', async (t) => {
		const { status, body, headers } = await gateway.request('GET', '/', { headers: { accept: 'application/json' } })
		t.equal(status, 200)
		t.match(headers.get('vary'), /accept/)
		t.strictSame(body, {
			name: 'svc gateway',
			description: 'A gateway for autonomous agents.',
			status: 'ok',
			docs: '/docs',
		})
	})
})

void t.test('the front page states without details that the configuration was refused', async (t) => {
	const gateway = await startGateway({ config: 'plugins: {console: false}\nruns: {max_waiting: 7}\n' })
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	const rejected = stream.waitFor('config.rejected')
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'runs: {max_wating: 7}\n')
	await rejected
	const { status, body } = await gateway.request<string>('GET', '/', { headers: { accept: 'text/html' } })
	t.equal(status, 200)
	t.match(body, 'something needs attention')
	t.notMatch(body, /max_wating|runs/)
	const { body: json } = await gateway.request('GET', '/', { headers: { accept: 'application/json' } })
	t.equal(json.status, 'degraded')
})
