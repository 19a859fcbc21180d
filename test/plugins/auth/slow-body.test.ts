/** Requests whose token is revoked before their body is complete. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { eventually } from '../../support/wait.ts'

void t.test('a request is refused if its token is revoked before its body is complete', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const tokens = async (): Promise<number> => (await gateway.request('GET', '/v1/auth/tokens')).body.tokens.length
	const made = await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['tokens:admin'] } })
	const { openRequests } = gateway.running.gateway.status
	const send = async (): Promise<{ complete(): void; answer: Promise<string> }> => {
		const before = openRequests()
		const { hostname, port } = new URL(gateway.url)
		const socket = connect(Number(port), hostname)
		t.teardown(() => socket.destroy())
		await once(socket, 'connect')
		const body = JSON.stringify({ scopes: ['*'] })
		const head = [
			'POST /v1/auth/tokens HTTP/1.1',
			`host: ${hostname}:${port}`,
			`authorization: Bearer ${made.body.token}`,
			'content-type: application/json',
			`content-length: ${body.length}`,
			'connection: close',
		]
		socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 5)}`)
		await eventually(() => openRequests() === before + 1)
		let text = ''
		socket.setEncoding('utf8').on('data', (part: string) => (text += part))
		return { complete: () => void socket.write(body.slice(5)), answer: once(socket, 'close').then(() => text) }
	}
	const valid = await send()
	valid.complete()
	t.match(await valid.answer, /^HTTP\/1\.1 201 /)
	t.equal(await tokens(), 2)

	const late = await send()
	t.equal((await gateway.request('DELETE', `/v1/auth/tokens/${made.body.id}`)).status, 200)
	late.complete()
	t.match(await late.answer, /^HTTP\/1\.1 401 [^]*www-authenticate: Bearer[^]*the token is no longer valid/i)
	t.equal(await tokens(), 2, 'no token was created')
})
