/** GET /metrics: its values, formats, bounds and permissions. */
import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { servers, stdio } from '../../support/mcp.ts'
import { startModelServer } from '../../support/model-server.ts'
import { follow } from '../../support/runs.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'
import { scrape } from './scrape.ts'
import type { Scrape } from './scrape.ts'

const model = await startModelServer()
t.teardown(() => model.stop())
const held = await startManualModel()
t.teardown(() => held.stop())
const gateway = await startGateway({
	config: `
providers:
  lab: {kind: openai, base_url: "${model.url}", api_key: key, model: small-1}
  held: {kind: openai, base_url: "${held.url}", api_key: key, model: held-1}
  offline: {kind: offline}
default_provider: offline
`,
})
t.teardown(() => gateway.stop())

/** Scrapes until these series have these values. */
const scrapeUntil = (gateway: TestGateway, wanted: Record<string, number>): Promise<Scrape> =>
	eventually(
		() => scrape(gateway),
		(values) => Object.entries(wanted).every(([series, value]) => values.get(series) === value),
	)

void t.test('counts runs, model calls, tokens and tool calls', async (t) => {
	model.on('count', { text: 'Counted.', usage: { prompt_tokens: 7, completion_tokens: 3 } })
	model.on('refuse', { status: 400 })
	model.on('again', { status: 500 }, { text: 'Yes.', usage: { prompt_tokens: 1, completion_tokens: 1 } })
	model.on(/nothing|your answer was empty/, { text: '', usage: { prompt_tokens: 5, completion_tokens: 1 } })
	const ada = await follow(t, gateway, 'ada', { config: { provider: 'lab' } })
	await ada.complete('count')
	await ada.ended(await ada.start('refuse'))
	await ada.complete('again')
	await ada.ended(await ada.start('nothing'))
	const dan = await follow(t, gateway, 'dan', { config: { provider: 'held' } })
	const slow = await dan.start('slow')
	await held.called('slow')
	const during = await scrapeUntil(gateway, { svc_runs_active: 1, 'svc_worker_pool_runs{state="active"}': 1 })
	t.equal(during.get('svc_sse_clients'), 2)
	t.ok(Number(during.get('svc_http_requests_in_flight')) >= 3, 'the streams and the scrape are in flight')
	t.ok(Number(during.get('svc_worker_pool_threads')) > 0)
	await dan.call('stop', {})
	await dan.ended(slow)

	const eve = await follow(t, gateway, 'eve')
	await eve.complete('/tool memory.store {"content": "x"}\n/tool memory.store {}\n/tool surely.not.there {}')

	const after = await scrapeUntil(gateway, {
		svc_runs_active: 0,
		'svc_runs_total{outcome="completed",trigger="api"}': 3,
	})
	const expected = {
		'svc_runs_total{outcome="failed",trigger="api"}': 2,
		'svc_runs_total{outcome="stopped",trigger="api"}': 1,
		svc_run_duration_seconds_count: 6,
		'svc_run_duration_seconds_bucket{le="+Inf"}': 6,
		'svc_model_calls_total{provider="lab",outcome="answered"}': 2,
		'svc_model_calls_total{provider="lab",outcome="failed"}': 2,
		'svc_model_calls_total{provider="lab",outcome="retried"}': 3,
		'svc_model_calls_total{provider="held",outcome="stopped"}': 1,
		'svc_model_call_duration_seconds_count{provider="lab"}': 2,
		'svc_tool_calls_total{kind="primitive",tool="memory.store",outcome="ok"}': 1,
		'svc_tool_calls_total{kind="primitive",tool="memory.store",outcome="failed"}': 1,
		'svc_tool_calls_total{kind="unknown",tool="",outcome="failed"}': 1,
		svc_runs_waiting: 0,
		svc_runs_paused: 0,
		svc_generation: 1,
		svc_store_trouble: 0,
		svc_config_trouble: 0,
		svc_plugins_in_trouble: 0,
	}
	for (const [series, value] of Object.entries(expected)) t.equal(after.get(series), value, series)
	const { total } = (await gateway.request('GET', '/v1/usage')).body
	t.ok(total.input_tokens >= 7 + 1 + 3 * 5)
	t.equal(after.get('svc_model_tokens_total{type="input"}'), total.input_tokens)
	t.equal(after.get('svc_model_tokens_total{type="output"}'), total.output_tokens)
	t.ok(Number(after.get('svc_store_bytes')) > 0 && Number(after.get('svc_store_free_bytes')) > 0)
	const { version } = (await gateway.request('GET', '/v1/health')).body
	t.equal(after.get(`svc_build_info{version="${version}",node="${process.version}"}`), 1)
	t.notMatch(after.text, 'surely', 'text of a model is not used as a label')
})

void t.test('counts MCP servers and channels by their state', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'max' } })
	await gateway.request('POST', '/v1/agents/max/mcp', { body: stdio('good', servers.fixture) })
	await gateway.request('POST', '/v1/agents/max/mcp', { body: stdio('bad', '/no/such/program') })
	await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'BOT', value: '123456:not-a-real-token' } })
	const config = { api_root: 'http://127.0.0.1:9' }
	const channel = { type: 'chat_a', bot_token_ref: 'BOT', config }
	t.equal((await gateway.request('POST', '/v1/channels', { body: channel })).status, 201)
	await scrapeUntil(gateway, { 'svc_mcp_servers{status="connected"}': 1, 'svc_channel_up{type="chat_a"}': 0 })
})

void t.test('counts deliveries to webhooks', async (t) => {
	const hal = await follow(t, gateway, 'hal')
	const run_id = await hal.complete('/tool webhook.register {"slug": "ci"}')
	const { result } = (await hal.waitFor(run_id, 'primitive.result')).payload
	const { url } = JSON.parse(String(result)) as { url: string }
	const send = (headers: Record<string, string>) =>
		gateway.request('POST', new URL(url, gateway.url).pathname, { body: '{"a":1}', headers })
	t.equal((await send({ 'x-signature': 'sha256=00' })).status, 401)
	const signature = createHmac('sha256', 'not the secret').update('{"a":1}').digest('hex')
	t.equal((await send({ 'x-signature': `sha256=${signature}` })).status, 401)
	await scrapeUntil(gateway, { 'svc_webhook_deliveries_total{valid="false"}': 2 })
})

void t.test('has the process metrics that Prometheus expects, in both formats', async (t) => {
	const plain = await scrape(gateway)
	t.equal(plain.type, 'text/plain; version=0.0.4; charset=utf-8')
	for (const name of [
		'process_cpu_seconds_total',
		'process_start_time_seconds',
		'process_resident_memory_bytes',
		'nodejs_eventloop_lag_p99_seconds',
		'nodejs_heap_size_used_bytes',
		'nodejs_heap_space_size_used_bytes{space="old"}',
		`nodejs_version_info{version="${process.version}"}`,
	])
		t.ok(Number(plain.get(name)) >= 0, name)
	t.ok(plain.text.includes('\n# TYPE svc_runs_total counter\n'))

	const openMetrics = await scrape(
		gateway,
		'application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5',
	)
	t.equal(openMetrics.type, 'application/openmetrics-text; version=1.0.0; charset=utf-8')
	t.ok(openMetrics.text.includes('\n# TYPE svc_runs counter\n'))
	t.ok(openMetrics.text.endsWith('\n# EOF\n'))
	const counted = 'svc_runs_total{outcome="failed",trigger="api"}'
	t.equal(openMetrics.get(counted), plain.get(counted))
	const [again, preferring] = await Promise.all([
		scrape(gateway),
		scrape(gateway, 'text/plain, application/openmetrics-text;q=0.1'),
	])
	t.equal(again.get(counted), plain.get(counted), 'a scrape in one format does not change the other')
	t.equal(preferring.type, plain.type)
})

void t.test('the labels of requests are known methods and routes only', async (t) => {
	await gateway.request('GET', '/healthz')
	await gateway.request('GET', '/v1/agents/ada')
	const stream = await openStream(gateway.url)
	stream.close()
	const before = await scrape(gateway)
	t.ok(before.get('svc_http_requests_total{method="GET",route="/v1/events/stream",status="200"}'))
	t.ok(before.get('svc_http_requests_total{method="GET",route="/v1/agents/{name}",status="200"}'))
	const sendUnknown = async (n: number): Promise<void> => {
		await Promise.all([
			gateway.request('GET', `/odd/${n}`),
			gateway.request('GET', `/v1/agents/nobody-${n}?x=${n}`, { headers: { 'x-request-id': `id-${n}` } }),
			gateway.request('PROPFIND', `/%zz${n}`),
			gateway.request('PURGE', `/v1/agents/${n}`),
		])
	}
	await sendUnknown(0)
	// The process may add other series meanwhile, such as at the first garbage collection of a kind.
	const requestSeries = ({ samples }: Awaited<ReturnType<typeof scrape>>): number =>
		[...samples.keys()].filter((name) => name.startsWith('svc_http_')).length
	const count = requestSeries(await scrape(gateway))
	for (let n = 1; n <= 50; n++) await sendUnknown(n)
	const after = await scrape(gateway)
	t.equal(requestSeries(after), count)
	t.equal(after.get('svc_http_requests_total{method="GET",route="/v1/agents/{name}",status="404"}'), 51)
	t.equal(after.get('svc_http_requests_total{method="other",route="none",status="404"}'), 102)
	t.notMatch(after.text, /odd|nobody|PROPFIND/)
})

void t.test('paused and waiting runs and open questions count after a restart too', async (t) => {
	const home = makeHome({ config: '{}\n' }, t)
	const before = await startGateway({ home })
	const ada = await follow(t, before, 'ada')
	const run_id = await ada.start('/tool ask {"question": "Which?"}')
	const { question_id } = (await ada.waitFor(run_id, 'question.asked')).payload
	await ada.waitFor(run_id, 'run.paused')
	await ada.start('behind it')
	await scrapeUntil(before, { svc_runs_paused: 1, svc_runs_waiting: 1, svc_questions_open: 1, svc_runs_active: 0 })
	await before.stop()

	const after = await startGateway({ home })
	t.teardown(() => after.stop())
	await scrapeUntil(after, { svc_runs_paused: 1, svc_runs_waiting: 1, svc_questions_open: 1 })
	const again = await follow(t, after, 'ada')
	await again.call(`ask-responses/${String(question_id)}`, { answer: 'This.' })
	await scrapeUntil(after, {
		'svc_runs_total{outcome="completed",trigger="api"}': 2,
		svc_runs_paused: 0,
		svc_runs_waiting: 0,
		svc_questions_open: 0,
	})
})

void t.test('remote callers need events:read, local ones need no token', async (t) => {
	const strict = await startGateway({ config: 'auth_mode: token\n' })
	t.teardown(() => strict.stop())
	const { token: all } = await addToken(strict, ['*'])
	const { token: events } = await addToken(strict, ['events:read'], { by: all })
	const { token: agents } = await addToken(strict, ['agents:read'], { by: all })
	const remote = { headers: { 'x-forwarded-for': '203.0.113.9' } }
	const status = async (options: object): Promise<number> => (await strict.request('GET', '/metrics', options)).status
	t.equal(await status({}), 200, 'a local caller without a token')
	t.equal(await status(remote), 401, 'a remote caller without a token')
	t.equal(await status({ ...remote, token: events }), 200)
	t.equal(await status({ ...remote, token: all }), 200)
	t.equal(await status({ ...remote, token: agents }), 403)
	t.equal(await status({ token: agents }), 403, 'the token of a local caller counts')
	t.equal(await status({ token: 'svc_nonsense' }), 401)
	t.equal((await strict.request('GET', '/v1/audit')).status, 401, 'other routes need a token in token mode')
})

void t.test('switching the plugin off and on restarts the counters', async (t) => {
	const own = await startGateway({ config: '{}\n' })
	t.teardown(() => own.stop())
	const switchPlugin = async (on: boolean): Promise<void> => {
		writeFileSync(join(own.home, 'config/gateway.yaml'), `plugins: {metrics: ${on}}\n`)
		await own.running.gateway.reload()
	}
	writeFileSync(join(own.home, 'config/gateway.yaml'), 'plugins: [\n')
	await t.rejects(own.running.gateway.reload())
	t.equal((await scrape(own)).get('svc_config_trouble'), 1)
	for (let round = 1; round <= 2; round++) {
		await scrape(own)
		await switchPlugin(false)
		t.equal((await own.request('GET', '/metrics')).status, 404)
		await switchPlugin(true)
		const values = await scrape(own)
		t.equal(values.get('svc_generation'), 1 + 2 * round)
		t.equal(values.get('svc_http_requests_total{method="GET",route="/metrics",status="200"}'), undefined)
	}
})

void t.test('has the time of the newest backup', async (t) => {
	t.notMatch((await gateway.request('GET', '/metrics')).body, 'svc_backup_newest')
	const { created_at } = (await gateway.request('POST', '/v1/backups')).body
	await scrapeUntil(gateway, { svc_backup_newest_timestamp_seconds: Date.parse(created_at) / 1000 })
})
