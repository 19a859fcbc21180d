/** Request headers that HTTP lets a server ignore. */
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import { sendRaw } from '../plugins/auth/raw.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const host = new URL(gateway.url).host
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

void t.test('a Range of JSON is ignored, whatever it asks for', async (t) => {
	for (const range of ['bytes=0-5', 'bytes=900000-', 'bytes=-1', 'lines=1-2']) {
		const { status, headers, body } = await gateway.request('GET', '/v1/agents', { headers: { range } })
		t.equal(status, 200, range)
		t.match(body, [{ name: 'ada' }])
		t.equal(headers.get('accept-ranges'), null)
	}
})

void t.test('an Expect that is not known is ignored: the answer has its body and its id', async (t) => {
	const head = ['GET /v1/agents/ada HTTP/1.1', `Host: ${host}`, 'Expect: 202-miracle', 'X-Request-Id: mine']
	const { status, headers, body } = await sendRaw(gateway.url, head)
	t.match([status, headers['x-request-id'], body.name], [200, 'mine', 'ada'])
})
