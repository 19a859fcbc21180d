/**
 * The GET of the chat API that starts a run, as a browser sends it for pages of other origins. The requests were recorded
 * byte by byte from Chromium 156 with pages at http://evil.example and at another port of 127.0.0.1. `by`: what the page
 * did (`reload` and `typed` are actions of the user); `head`: what the browser sent.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { sendRaw } from '../plugins/auth/raw.ts'
import { startGateway } from '../support/gateway.ts'

const file = new URL('../fixtures/browser-requests.json', import.meta.url)
const recorded = JSON.parse(readFileSync(file, 'utf8')) as { by: string; head: string[] }[]

void t.test('no page of another origin starts a run, whichever host name it uses', async (t) => {
	const gateway = await startGateway({ config: 'server: {allowed_hosts: [gateway.lan]}\n' })
	t.teardown(() => gateway.stop())
	const legacy = gateway.running.gateway.status.url('legacy') ?? ''
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { port } = new URL(legacy)
	const prompts = async (): Promise<string[]> => {
		const { body } = await gateway.request<{ prompt: string }[]>('GET', '/v1/agents/ada/runs')
		return body.map(({ prompt }) => prompt)
	}

	const names = new Set<string>()
	for (const [at, { by, head }] of recorded.entries()) {
		const lines = head.map((line) =>
			line.replaceAll('{port}', port).replaceAll('{foreign}', '9').replace('{message}', `m${at}`),
		)
		const name = /^Host: (.*):/m.exec(lines.join('\n'))?.[1] ?? ''
		names.add(name)
		// The user reloads a response of the gateway: for these names the browser sends `same-origin`.
		const isOwn = by === 'reload' && ['127.0.0.1', 'localhost'].includes(name)
		const { status } = await sendRaw(legacy, lines)
		t.equal(status, isOwn ? 200 : 401, `${name}: ${by}`)
		t.equal((await prompts()).includes(`m${at}`), isOwn, `${name}: ${by}`)
	}
	t.strictSame([...names], ['127.0.0.1', 'localhost', 'gateway.lan', '[::ffff:7f00:1]'])
	t.equal((await prompts()).length, 2)

	const message = '/api/agents/ada/chat/stream?message=hello'
	const programs = [
		[`GET ${message} HTTP/1.1`, `Host: 127.0.0.1:${port}`],
		[`GET ${message} HTTP/1.1`, `Host: gateway.lan:${port}`, `Origin: http://gateway.lan:${port}`],
		[`GET ${message} HTTP/1.1`, `Host: gateway.lan:${port}`, 'Sec-Fetch-Site: same-origin'],
		[`GET /api/agents/ada/conversation HTTP/1.1`, `Host: gateway.lan:${port}`],
		[`GET /api/agents/ada/conversation HTTP/1.1`, `Host: 127.0.0.1:${port}`, 'Sec-Fetch-Site: none'],
	]
	for (const head of programs) t.equal((await sendRaw(legacy, head)).status, 200, head.join(' '))
})
