/** Large bodies share an amount of memory, which one caller cannot use up. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { RequestOptions } from '../../support/gateway.ts'
import { eventually } from '../../support/wait.ts'

void t.test('one caller cannot use all the memory for large bodies', async (t) => {
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

	/** Begins a chat completion whose body has no announced length. `body`: what is sent so far. */
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
	const json = JSON.stringify({ model: 'ada', messages: [{ role: 'user', content: 'Hello' }] })
	const waiting = [await begin(one, json), await begin(one, json), await begin(one, json)]
	const another = await begin(other, json)
	another.end()
	t.match(await another.answer, /^HTTP\/1\.1 200 /, 'another token is served before a request that waits')
	t.match(await waiting[2]?.answer, /^HTTP\/1\.1 503 [^]*retry-after: 2/i, 'the wait is limited')

	const next = await begin(one, json)
	next.end()
	waiting[0]?.end()
	t.match(await waiting[0]?.answer, /^HTTP\/1\.1 200 /)
	t.match(await next.answer, /^HTTP\/1\.1 200 /, 'it uses the memory that another request of its token has released')
	waiting[1]?.end()
	t.match(await waiting[1]?.answer, /^HTTP\/1\.1 200 /)

	const local = [await begin(null, json), await begin(null, json), await begin(null, json)]
	const concurrent = await begin(one, json)
	concurrent.end()
	t.match(await concurrent.answer, /^HTTP\/1\.1 200 /, 'all callers without a token have one share')
	t.match(await local[2]?.answer, /^HTTP\/1\.1 503 /)
	for (const { end, answer } of local.slice(0, 2)) {
		end()
		t.match(await answer, /^HTTP\/1\.1 200 /)
	}
})
