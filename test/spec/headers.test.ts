/** Request headers that HTTP lets a server ignore. */
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import { sendRaw } from '../plugins/auth/raw.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const host = new URL(gateway.url).host
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

void t.test('Range is ignored for JSON', async (t) => {
	for (const range of ['bytes=0-5', 'bytes=900000-', 'bytes=-1', 'lines=1-2']) {
		const { status, headers, body } = await gateway.request('GET', '/v1/agents', { headers: { range } })
		t.equal(status, 200, range)
		t.match(body, [{ name: 'ada' }])
		t.equal(headers.get('accept-ranges'), null)
	}
})

void t.test('an unknown Expect is ignored: the response has its body and the request id', async (t) => {
	const head = ['GET /v1/agents/ada HTTP/1.1', `Host: ${host}`, 'Expect: 202-miracle', 'X-Request-Id: mine']
	const { status, headers, body } = await sendRaw(gateway.url, head)
	t.match([status, headers['x-request-id'], body.name], [200, 'mine', 'ada'])
})
