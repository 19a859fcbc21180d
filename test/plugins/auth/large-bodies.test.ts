/** Large bodies share a limited amount of memory, which one caller cannot use up. */
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { watchDeadlines } from '../../support/deadlines.ts'
import { startGateway } from '../../support/gateway.ts'
import { beginPost } from '../../support/slow-request.ts'

void t.test('one caller cannot use all the memory for large bodies', async (t) => {
	const gateway = await startGateway({ config: 'plugins: { openai-api: true }\n' })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	/** For how long a request waits for memory. */
	const waits = watchDeadlines(t, 2_000)
	const { token: admin } = await addToken(gateway, ['*'])
	const { token: one } = await addToken(gateway, ['runs:write'], { by: admin })
	const { token: other } = await addToken(gateway, ['runs:write'], { by: admin })
	const json = JSON.stringify({ model: 'ada', messages: [{ role: 'user', content: 'Hello' }] })

	/** Begins a chat completion whose body may become large: its length is not announced. */
	const begin = async (token: string | null): Promise<{ end(): void; answer: Promise<string> }> => {
		const headers = [
			...(token === null ? [] : [`authorization: Bearer ${token}`]),
			'content-type: application/json',
			'transfer-encoding: chunked',
		]
		const chunk = `${json.length.toString(16)}\r\n${json}\r\n`
		const { write, response } = await beginPost(t, gateway, '/v1/chat/completions', headers, chunk)
		return { end: () => write('0\r\n\r\n'), answer: response }
	}
	const waiting = [await begin(one), await begin(one), await begin(one)]
	const another = await begin(other)
	another.end()
	t.match(await another.answer, /^HTTP\/1\.1 200 /, 'another token is served before a request that waits')
	waits.expire()
	t.match(await waiting[2]?.answer, /^HTTP\/1\.1 503 [^]*retry-after: 2/i, 'the wait is limited')

	const next = await begin(one)
	next.end()
	waiting[0]?.end()
	t.match(await waiting[0]?.answer, /^HTTP\/1\.1 200 /)
	t.match(await next.answer, /^HTTP\/1\.1 200 /, 'it uses the memory that another request of its token has released')
	waiting[1]?.end()
	t.match(await waiting[1]?.answer, /^HTTP\/1\.1 200 /)

	const local = [await begin(null), await begin(null), await begin(null)]
	const concurrent = await begin(one)
	concurrent.end()
	t.match(await concurrent.answer, /^HTTP\/1\.1 200 /, 'all callers without a token have one share')
	waits.expire()
	t.match(await local[2]?.answer, /^HTTP\/1\.1 503 /)
	for (const { end, answer } of local.slice(0, 2)) {
		end()
		t.match(await answer, /^HTTP\/1\.1 200 /)
	}
})
