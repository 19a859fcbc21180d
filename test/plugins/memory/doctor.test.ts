import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { openCheckContext } from '../../../core/cli/doctor/check-context.ts'
import doctor from '../../../plugins/memory/doctor.ts'
import { makeHome } from '../../support/gateway.ts'

void t.test('the check of embeddings sends the headers and parameters of the provider', async (t) => {
	const server = createServer(({ url, headers }, response) => {
		const isKnown = url === '/v1/embeddings?api-version=1' && headers['api-key'] === 'a-key-of-the-server'
		response
			.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' })
			.end(JSON.stringify(isKnown ? { data: [{ embedding: [1, 0, 0, 0] }] } : {}))
	})
	await once(server.listen(0, '127.0.0.1'), 'listening')
	const { port } = server.address() as AddressInfo
	const home = makeHome({
		config: `providers:
  cloud:
    kind: openai
    base_url: http://127.0.0.1:${port}/v1
    model: chat
    embedding_model: small
    headers: {api-key: a-key-of-the-server}
    query: {api-version: '1'}
`,
	})
	t.teardown(() => {
		server.close()
		rmSync(home, { recursive: true, force: true })
	})
	await using context = await openCheckContext({ home, env: { PATH: process.env.PATH } })
	t.strictSame(await doctor.checks[0]?.run(context), [
		{ level: 'ok', message: 'small returns embeddings of 4 dimensions, the size of the stored ones', fix: null },
	])
})

void t.test('the check of embeddings shows what the server says', async (t) => {
	const server = createServer((_, response) => {
		const error = { code: 501, message: 'This server does not support embeddings. Start it with `--embeddings`' }
		response.writeHead(501, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
	})
	await once(server.listen(0, '127.0.0.1'), 'listening')
	const { port } = server.address() as AddressInfo
	const home = makeHome({
		config: `providers:\n  local: {kind: openai, base_url: 'http://127.0.0.1:${port}', model: m, embedding_model: e}\n`,
	})
	t.teardown(() => {
		server.close()
		rmSync(home, { recursive: true, force: true })
	})
	await using context = await openCheckContext({ home, env: { PATH: process.env.PATH } })
	t.match(await doctor.checks[0]?.run(context), [{ message: /501.*Start it with `--embeddings`/, fix: /such as \/v1/ }])
})
