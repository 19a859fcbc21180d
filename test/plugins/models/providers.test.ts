/** Model providers over HTTP: the list, and the check of one that is not configured. */
import { createServer } from 'node:http'
import t from 'tap'
import { askingUntil } from '../../../core/cli/doctor/asking.ts'
import { tryModel } from '../../../plugins/models/server.ts'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { startModelServer } from '../../support/model-server.ts'

const model = await startModelServer()
t.teardown(() => model.stop())
model.on(/ready/, 'ready')
const keys: (string | undefined)[] = []
const strict = createServer((request, response) => {
	keys.push(request.headers.authorization)
	const denied = request.headers.authorization !== 'Bearer sk-right'
	const body = denied
		? { error: { message: `wrong key: ${request.headers.authorization}` } }
		: request.url === '/v1/models'
			? { data: [{ id: 'qwen3' }, { id: 'a\u001b[2Jb' }, { id: 'phi' }] }
			: { choices: [{ message: { content: 'ready' } }] }
	response.writeHead(denied ? 401 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
})
const { url: strictUrl, stop: stopStrict } = await listenOnLoopback(strict)
t.teardown(stopStrict)
const base_url = `${strictUrl}/v1`

const gateway = await startGateway({
	config: `providers:
  local: {kind: openai, base_url: "${model.url}", model: qwen3}
  cloud: {kind: anthropic, base_url: "https://example.com/v1", model: m, api_key: {secret: CLOUD_KEY}}
  plain: {kind: openai, base_url: "https://example.com/v1", model: m, api_key: sk-in-the-file}
default_provider: local
fallback: [cloud]
`,
	env: { OTHER_KEY: 'sk-wrong' },
})
t.teardown(() => gateway.stop())

void t.test('providers are listed without their keys', async (t) => {
	const { status, body } = await gateway.request('GET', '/v1/providers')
	t.equal(status, 200)
	t.strictSame(
		body.map(({ name, key, key_secret, is_default, fallback }: Record<string, unknown>) => [
			name,
			key,
			key_secret ?? '',
			is_default,
			fallback,
		]),
		[
			['local', 'none', '', true, false],
			['cloud', 'vault', 'CLOUD_KEY', false, true],
			['plain', 'setting', '', false, false],
		],
	)
	t.notMatch(JSON.stringify(body), /sk-in/)
})

void t.test('a check uses a key without storing it', async (t) => {
	const check = (api_key?: object, fields: object = { model: 'qwen3' }) =>
		gateway.request('POST', '/v1/providers/check', {
			body: { kind: 'openai', base_url, ...(api_key && { api_key }), ...fields },
		})
	const denied = await check()
	t.equal(denied.status, 200)
	t.match(denied.body, { state: 'denied', message: /requires a key \(401\)/, models: [], answers: false })
	const wrong = await check({ env: 'OTHER_KEY' })
	t.match(wrong.body, { state: 'denied', message: /refuses the key \(401\): wrong key: Bearer \[redacted\]/ })
	t.equal(keys.at(-1), 'Bearer sk-wrong')

	await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'RIGHT', value: 'sk-right' } })
	for (const key of [{ secret: 'RIGHT' }, { value: 'sk-right' }]) {
		const { body } = await check(key)
		t.match(body, { state: 'ok', message: null, models: ['phi', 'qwen3'], answers: true })
	}
	const listed = await check({ value: 'sk-right' }, {})
	t.match(listed.body, { state: 'ok', answers: false, duration_ms: 0 })

	t.match((await check({ env: 'NONE_SUCH' })).body, { statusCode: 400, message: /without the variable NONE_SUCH/ })
	t.equal((await check({ secret: 'NONE_SUCH' })).status, 404)
})

void t.test('an invalid key is neither sent nor shown', async (t) => {
	const value = 'first line\nsecond line'
	await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'LINES', value } })
	const sent = keys.length
	for (const api_key of [{ secret: 'LINES' }, { value }]) {
		const { body } = await gateway.request('POST', '/v1/providers/check', {
			body: { kind: 'openai', base_url, model: 'qwen3', api_key },
		})
		t.match(body, { state: 'denied', message: /printable ASCII/, answers: false })
		t.notMatch(body.message, /first|second/)
	}
	t.equal(keys.length, sent)
})

void t.test('an address without a server is reported as unreachable', async (t) => {
	const nothing = await gateway.request('POST', '/v1/providers/check', {
		body: { kind: 'openai', base_url: 'http://127.0.0.1:9/v1', model: 'm' },
	})
	t.match(nothing.body, { state: 'unreachable', message: /127\.0\.0\.1:9/, answers: false })
})

void t.test('a slow model is reported as slow, not as a server that is down', async (t) => {
	const silent = await listenOnLoopback(createServer(() => {}))
	t.teardown(silent.stop)
	const ask = askingUntil(new AbortController().signal, 100)
	const verdict = await tryModel({ kind: 'openai', base_url: `${silent.url}/v1` }, 'qwen3', ask)
	t.match(verdict, {
		state: 'unreachable',
		message: /^qwen3 at .+ too slow: .+ within 0\.1 s; .+ try again\. .+ timeout_s/,
	})
})

void t.test('only a caller with the scope * can check a provider', async (t) => {
	const { token } = await addToken(gateway, ['agents:write'])
	const { status } = await gateway.request('POST', '/v1/providers/check', { token, body: { kind: 'openai', base_url } })
	t.equal(status, 403)
})
