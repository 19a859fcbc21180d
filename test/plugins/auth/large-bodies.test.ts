/** Large bodies share memory, of which one caller leaves some to the others. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { RequestOptions } from '../../support/gateway.ts'
import { eventually } from '../../support/wait.ts'

void t.test('one caller cannot hold the memory for large bodies: others find room', async (t) => {
	const gateway = await startGateway({ config: 'plugins: { openai-api: true }\n' })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const tokenFor = async (scopes: string[], token?: string): Promise<string> => {
		const options: RequestOptions = { body: { scopes }, ...(token !== undefined && { token }) }
		return (await gateway.request('POST', '/v1/auth/tokens', options)).body.token
	}
	const admin = await tokenFor(['*'])
	const [one, other] = [await tokenFor(['runs:write'], admin), await tokenFor(['runs:write'], admin)]
	const { openRequests } = gateway.running.gateway.status
	const { hostname, port } = new URL(gateway.url)

	/** A chat completion whose body has any length; `body` is all that is sent of it so far. */
	const begin = async (token: string | null, body: string): Promise<{ end(): void; answer: Promise<string> }> => {
		const before = openRequests()
		const socket = connect(Number(port), hostname)
		t.teardown(() => socket.destroy())
		await once(socket, 'connect')
		const head = [
			'POST /v1/chat/completions HTTP/1.1',
			`host: ${hostname}:${port}`,
			...(token === null ? [] : [`authorization: Bearer ${token}`]),
			'content-type: application/json',
			'transfer-encoding: chunked',
			'connection: close',
		]
		let text = ''
		socket.setEncoding('utf8').on('data', (part: string) => (text += part))
		const answer = once(socket, 'close').then(() => text)
		socket.write(`${head.join('\r\n')}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`)
		await eventually(() => openRequests() === before + 1)
		return { end: () => void socket.write('0\r\n\r\n'), answer }
	}
	const whole = JSON.stringify({ model: 'ada', messages: [{ role: 'user', content: 'Hello' }] })
	const held = [await begin(one, whole), await begin(one, whole), await begin(one, whole)]
	const theirs = await begin(other, whole)
	theirs.end()
	t.match(await theirs.answer, /^HTTP\/1\.1 200 /, 'another token finds room, ahead of one that waits')
	t.match(await held[2]?.answer, /^HTTP\/1\.1 503 [^]*retry-after: 2/i, 'which does not wait for ever')

	const next = await begin(one, whole)
	next.end()
	held[0]?.end()
	t.match(await held[0]?.answer, /^HTTP\/1\.1 200 /)
	t.match(await next.answer, /^HTTP\/1\.1 200 /, 'it takes the room that another request of its token gives back')
	held[1]?.end()
	t.match(await held[1]?.answer, /^HTTP\/1\.1 200 /)

	const local = [await begin(null, whole), await begin(null, whole), await begin(null, whole)]
	const beside = await begin(one, whole)
	beside.end()
	t.match(await beside.answer, /^HTTP\/1\.1 200 /, 'all callers without a token have one share')
	t.match(await local[2]?.answer, /^HTTP\/1\.1 503 /)
	for (const { end, answer } of local.slice(0, 2)) {
		end()
		t.match(await answer, /^HTTP\/1\.1 200 /)
	}
})
