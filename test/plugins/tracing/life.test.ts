/** Spans across restarts, reloads and failures of the collector. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { startCollector } from '../../support/collector.ts'
import type { TestCollector, TestSpan } from '../../support/collector.ts'
import { gatewayFor, makeHome, startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const env = { OTEL_BSP_SCHEDULE_DELAY: '20', OTEL_EXPORTER_OTLP_TIMEOUT: '300' }
const collectorFor = async (t: Test): Promise<TestCollector> => {
	const collector = await startCollector()
	t.teardown(() => collector.stop())
	return collector
}
const start = (t: Test, config: string, variables: NodeJS.ProcessEnv = {}): Promise<TestGateway> =>
	gatewayFor(t, { config, env: { ...env, ...variables } })
const reconfigure = async (gateway: TestGateway, config: string): Promise<void> => {
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), config)
	await gateway.running.gateway.reload()
}
const traceOf = (run_id: string): string => run_id.replaceAll('-', '')
const spansOf = ({ spans }: TestCollector, run_id: string): TestSpan[] =>
	spans.filter(({ attributes }) => attributes['svc.run.id'] === run_id)
const metric = async (gateway: TestGateway, name: string): Promise<number> => {
	const { body } = await gateway.request<string>('GET', '/metrics')
	return Number(
		body
			.split('\n')
			.find((line) => line.startsWith(`${name} `))
			?.slice(name.length + 1),
	)
}

void t.test('a run that is paused during a restart continues in its trace', async (t) => {
	const collector = await collectorFor(t)
	const home = makeHome({ config: `tracing: {endpoint: "${collector.url}"}\n` }, t)
	const before = await startGateway({ home, env })
	const ada = await follow(t, before, 'ada')
	const run_id = await ada.start('/tool ask {"question": "Which?"}')
	const { question_id } = (await ada.waitFor(run_id, 'question.asked')).payload
	await ada.waitFor(run_id, 'run.paused')
	const waiting = await ada.start('waits behind it')
	const bob = await follow(t, before, 'bob')
	const parent = await bob.start('/tool subagent.spawn {"prompt": "/tool ask {\\"question\\": \\"What?\\"}"}')
	const asked = await bob.stream.waitFor('question.asked')
	const child = String(asked.run_id)
	await bob.waitFor(child, 'run.paused')
	await before.stop()

	t.match(spansOf(collector, run_id), [
		{ id: traceOf(run_id).slice(16), links: [], attributes: { 'svc.run.outcome': 'interrupted' }, status: 0 },
	])
	const after = await startGateway({ home, env })
	t.teardown(() => after.stop())
	const again = await follow(t, after, 'ada')
	await again.call(`ask-responses/${String(question_id)}`, { answer: 'This.' })
	await again.ended(run_id)
	const continued = await collector.span((span) => span.attributes['svc.run.id'] === run_id && span.links.length > 0)
	t.match(continued, {
		trace: traceOf(run_id),
		parent: '',
		name: 'invoke_agent ada',
		links: [{ trace: traceOf(run_id), id: traceOf(run_id).slice(16) }],
		attributes: { 'svc.run.outcome': 'completed', 'svc.run.trigger': 'api' },
	})
	t.not(continued.id, continued.links[0]?.id)
	t.strictSame(
		collector.spans.filter(({ parent }) => parent === continued.id).map(({ name }) => name),
		['chat offline'],
	)
	const queued = await collector.span((span) => span.attributes['svc.run.id'] === waiting)
	t.strictSame(queued.links, [], 'a run that had not begun has no link')

	const bobAgain = await follow(t, after, 'bob')
	await bobAgain.call(`ask-responses/${String(asked.payload.question_id)}`, { answer: 'That.' })
	await bobAgain.ended(parent)
	const trace = traceOf(parent)
	const continuedSpan = (id: string) =>
		collector.span((span) => span.attributes['svc.run.id'] === id && span.links.length > 0)
	t.match(await continuedSpan(parent), { trace, parent: '', links: [{ trace, id: trace.slice(16) }] })
	t.match(await continuedSpan(child), {
		trace,
		parent: trace.slice(16),
		links: [{ trace, id: traceOf(child).slice(16) }],
	})
})

void t.test('a reload moves the spans to another collector, those of runs in progress too', async (t) => {
	const [first, second] = [await collectorFor(t), await collectorFor(t)]
	const gateway = await start(t, `tracing: {endpoint: "${first.url}"}\n`)
	const ada = await follow(t, gateway, 'ada')
	const asking = await ada.start('/tool ask {"question": "Which?"}')
	const { question_id } = (await ada.waitFor(asking, 'question.asked')).payload
	await ada.waitFor(asking, 'run.paused')

	await reconfigure(gateway, `tracing: {endpoint: "${second.url}", content: true}\n`)
	t.match(spansOf(first, asking), [{ attributes: { 'svc.run.outcome': 'interrupted' } }])
	await ada.call(`ask-responses/${String(question_id)}`, { answer: 'This.' })
	await ada.ended(asking)
	await second.span((span) => span.attributes['svc.run.id'] === asking && span.links.length > 0)
	t.equal(spansOf(first, asking).length, 1)

	await reconfigure(gateway, 'tracing: {endpoint: null}\n')
	const untraced = [await ada.complete('without a collector')]
	await reconfigure(gateway, `tracing: {endpoint: "${second.url}", sample_ratio: 0}\n`)
	untraced.push(await ada.complete('not sampled'))
	await reconfigure(gateway, `tracing: {endpoint: "${second.url}"}\n`)
	const run_id = await ada.complete('traced')
	await second.span((span) => span.attributes['svc.run.id'] === run_id)
	for (const id of untraced) t.strictSame(spansOf(second, id), [])
})

void t.test('prompts, answers and arguments are sent only with tracing.content, without secrets', async (t) => {
	const collector = await collectorFor(t)
	const gateway = await start(t, `tracing: {endpoint: "${collector.url}", content: true}\n`)
	const ada = await follow(t, gateway, 'ada', { persona: 'You are Ada.' })
	const { body } = await gateway.request('POST', '/v1/vault/secrets', {
		body: { name: 'DOOR', value: 'open-sesame-1234' },
	})
	await gateway.request('POST', '/v1/vault/grants', { body: { agent_id: 'ada', secret_id: body.id } })
	await ada.complete('/tool vault.read {"name": "DOOR"}')
	const run_id = await ada.complete('/tool memory.store {"content": "the door says open-sesame-1234"}')
	const run = await collector.span(({ attributes }) => attributes['svc.run.id'] === run_id)
	t.match(run.attributes, {
		'gen_ai.system_instructions': '[{"type":"text","content":"You are Ada."}]',
		'gen_ai.input.messages':
			/^\[\{"role":"user","parts":\[\{"type":"text","content":"\/tool memory\.store .*\[redacted:DOOR\]/,
		'gen_ai.output.messages': /^\[\{"role":"assistant",/,
	})
	const tool = collector.spans.find(({ parent, name }) => parent === run.id && name === 'execute_tool memory.store')
	t.match(tool?.attributes, {
		'gen_ai.tool.call.arguments': '{"content": "the door says [redacted:DOOR]"}',
		'gen_ai.tool.call.result': /"id"/,
	})
	t.notMatch(JSON.stringify(collector.spans.map(({ attributes }) => attributes)), 'open-sesame')
})

void t.test('an unreachable, failing or silent collector does not affect runs', async (t) => {
	const collector = await collectorFor(t)
	const stopped = await startCollector()
	await stopped.stop()
	const gateway = await start(t, `tracing: {endpoint: "${stopped.url}"}\n`)
	const ada = await follow(t, gateway, 'ada')
	const lastError = async (): Promise<string | null> =>
		(await gateway.request('GET', '/v1/plugins')).body.find(({ name }: { name: string }) => name === 'tracing')
			.last_error
	await ada.complete('hello')
	const counted = (outcome: string): Promise<boolean> =>
		eventually(async () => (await metric(gateway, `svc_trace_spans_total{outcome="${outcome}"}`)) >= 2)
	await counted('dropped')
	t.match(await lastError(), /^spans cannot be delivered: .*ECONNREFUSED/)

	collector.answer = 400
	await reconfigure(gateway, `tracing: {endpoint: "${collector.url}"}\n`)
	await ada.complete('hello')
	await counted('dropped')
	t.type(await lastError(), 'string')
	collector.answer = 200
	await ada.complete('hello')
	await counted('sent')
	t.equal(await lastError(), null)

	collector.answer = 'silent'
	const count = collector.requests.length
	await ada.complete('hello')
	await eventually(() => collector.requests.length > count)
	await ada.complete('runs continue')
	await reconfigure(gateway, 'tracing: {endpoint: null}\n')
	t.equal(await lastError(), null, 'the reload does not wait for the collector')
})

void t.test(
	'the environment sets collector and headers, or switches tracing off; an invalid address is reported',
	async (t) => {
		const collector = await collectorFor(t)
		const gateway = await start(t, '{}\n', {
			OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path`,
			OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=lab%201,authorization=Bearer%20abc',
		})
		const ada = await follow(t, gateway, 'ada')
		const run_id = await ada.complete('hello')
		await collector.span(({ attributes }) => attributes['svc.run.id'] === run_id)
		t.match(collector.requests[0], { path: '/own/path', headers: { 'x-tenant': 'lab 1', authorization: 'Bearer abc' } })

		const other = await start(t, '{}\n', { OTEL_EXPORTER_OTLP_ENDPOINT: 'not an address' })
		const { body } = await other.request('GET', '/v1/plugins')
		t.match(body.find(({ name }: { name: string }) => name === 'tracing').last_error, /must be an address/)
		const off = await start(t, '{}\n', { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SDK_DISABLED: 'true' })
		const before = collector.requests.length
		await (await follow(t, off, 'bob')).complete('hello')
		t.ok(
			Number.isNaN(await metric(off, 'svc_trace_spans_total{outcome="sent"}')),
			'without tracing there are no metrics of it',
		)
		t.equal(collector.requests.length, before)
	},
)
