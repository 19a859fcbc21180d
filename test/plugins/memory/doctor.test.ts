import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { openCheckContext } from '../../../core/cli/doctor/check-context.ts'
import doctor from '../../../plugins/memory/doctor.ts'
import type { Finding } from '../../../core/cli/doctor/contract.ts'
import { makeHome } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'

/** Runs the check of embeddings with the providers of `config`, which gets the server's URL. */
async function check(
	t: Test,
	config: (url: string) => string,
	answer: RequestListener,
): Promise<Finding[] | undefined> {
	const { url, stop } = await listenOnLoopback(createServer(answer))
	t.teardown(stop)
	const home = makeHome({ config: config(url) }, t)
	await using context = await openCheckContext({ home, env: { PATH: process.env.PATH } })
	// Awaited here, since the context ends with this function.
	return await doctor.checks[0]?.run(context)
}

void t.test('the check of embeddings sends the headers and parameters of the provider', async (t) => {
	const config = (url: string): string => `providers:
  cloud:
    kind: openai
    base_url: ${url}/v1
    model: chat
    embedding_model: small
    headers: {api-key: a-key-of-the-server}
    query: {api-version: '1'}
`
	const found = await check(t, config, ({ url, headers }, response) => {
		const isKnown = url === '/v1/embeddings?api-version=1' && headers['api-key'] === 'a-key-of-the-server'
		response
			.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' })
			.end(JSON.stringify(isKnown ? { data: [{ embedding: [1, 0, 0, 0] }] } : {}))
	})
	t.strictSame(found, [
		{ level: 'ok', message: 'small returns embeddings of 4 dimensions, the size of the stored ones', fix: null },
	])
})

void t.test("the check of embeddings shows the server's error", async (t) => {
	const config = (url: string): string =>
		`providers:\n  local: {kind: openai, base_url: '${url}', model: m, embedding_model: e}\n`
	const found = await check(t, config, (_, response) => {
		const error = { code: 501, message: 'This server does not support embeddings. Start it with `--embeddings`' }
		response.writeHead(501, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
	})
	t.match(found, [{ message: /501.*Start it with `--embeddings`/, fix: /such as \/v1/ }])
})
