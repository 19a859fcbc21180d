/** Spans of runs that a collector receives. */
import t from 'tap'
import { startCollector } from '../../support/collector.ts'
import type { TestSpan } from '../../support/collector.ts'
import { startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { startModelServer } from '../../support/model-server.ts'
import { follow } from '../../support/runs.ts'
import { addSkill, programText } from '../../support/skills.ts'

const collector = await startCollector()
t.teardown(() => collector.stop())
const model = await startModelServer()
t.teardown(() => model.stop())
const held = await startManualModel()
t.teardown(() => held.stop())
const gateway = await startGateway({
	config: `
tracing: {endpoint: "${collector.url}/"}
providers:
  lab: {kind: openai, base_url: "${model.url}", api_key: key, model: small-1}
  held: {kind: openai, base_url: "${held.url}", api_key: key, model: held-1}
  offline: {kind: offline}
default_provider: offline
`,
	env: {
		OTEL_BSP_SCHEDULE_DELAY: '20',
		OTEL_SERVICE_NAME: 'lab-gateway',
		OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,team=a%20b',
	},
})
t.teardown(() => gateway.stop())

const traceOf = (run_id: string): string => run_id.replaceAll('-', '')
const rootSpan = (run_id: string): Promise<TestSpan> =>
	collector.span((span) => span.attributes['svc.run.id'] === run_id && span.links.length === 0)
const childrenOf = ({ id }: TestSpan): TestSpan[] =>
	collector.spans.filter(({ parent }) => parent === id).toSorted((a, b) => (a.start < b.start ? -1 : 1))

void t.test('a run has spans of its model calls and tool calls', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.complete('/tool memory.store {"content": "Berlin is nice"}')
	const run = await rootSpan(run_id)
	t.match(run, {
		trace: traceOf(run_id),
		id: traceOf(run_id).slice(16),
		parent: '',
		name: 'invoke_agent ada',
		kind: 1,
		status: 0,
		attributes: {
			'gen_ai.operation.name': 'invoke_agent',
			'gen_ai.agent.name': 'ada',
			'gen_ai.provider.name': 'offline',
			'gen_ai.conversation.id': (await ada.read(run_id)).conversation,
			'svc.run.trigger': 'api',
			'svc.run.outcome': 'completed',
		},
	})
	t.ok(Number(run.attributes['gen_ai.usage.input_tokens']) > 0)
	const children = childrenOf(run)
	t.strictSame(
		children.map(({ name, kind, trace }) => [name, kind, trace]),
		[
			['chat offline', 3, run.trace],
			['execute_tool memory.store', 1, run.trace],
			['chat offline', 3, run.trace],
		],
	)
	for (const { name, start, end } of children) t.ok(start >= run.start && end <= run.end && end >= start, name)
	t.match(children[0]?.attributes, {
		'gen_ai.operation.name': 'chat',
		'gen_ai.request.model': 'offline',
		'svc.run.step': 1,
	})
	t.match(children[1]?.attributes, {
		'gen_ai.tool.name': 'memory.store',
		'gen_ai.tool.type': 'function',
		'gen_ai.agent.name': 'ada',
	})
	t.ok(children[1]?.attributes['gen_ai.tool.call.id'])
	t.match(collector.resource, {
		'service.name': 'lab-gateway',
		'service.version': gateway.running.gateway.status.version,
		'deployment.environment.name': 'test',
		team: 'a b',
	})
	t.equal(collector.requests[0]?.path, '/v1/traces')
	t.notMatch(
		JSON.stringify(collector.spans.map(({ attributes, events }) => [attributes, events])),
		'Berlin',
		'spans have no content by default',
	)
})

void t.test('a primitive that a skill calls is a child of the skill', async (t) => {
	const eve = await follow(t, gateway, 'eve')
	const permissions = 'permissions:\n  primitives: [memory.stm_read]'
	await addSkill(gateway, 'eve', programText('noter', `return svc.primitive('memory.stm_read', {})`, permissions))
	const run = await rootSpan(await eve.complete('/tool skill_noter {}'))
	const [skill] = childrenOf(run).filter(({ name }) => name === 'execute_tool noter')
	t.ok(skill)
	t.strictSame(skill && childrenOf(skill).map(({ name }) => name), ['execute_tool memory.stm_read'])
})

void t.test('a failed span has its error code, but no message', async (t) => {
	model.on('refuse', { status: 400, message: 'SECRET-WORDS' })
	model.on('again', { status: 500 }, 'It works.')
	const bob = await follow(t, gateway, 'bob', { config: { provider: 'lab' } })
	const failed = await rootSpan(await bob.start('refuse'))
	t.match(failed, { status: 2, attributes: { 'svc.run.outcome': 'failed', 'error.type': 'model_rejected' } })
	t.match(childrenOf(failed)[0], {
		name: 'chat small-1',
		status: 2,
		attributes: { 'gen_ai.provider.name': 'lab', 'error.type': 'model_rejected' },
	})
	t.notMatch(
		JSON.stringify(collector.spans, (_, value: unknown) => (typeof value === 'bigint' ? 0 : value)),
		'SECRET-WORDS',
	)

	const [call] = childrenOf(await rootSpan(await bob.complete('again')))
	t.match(call, { status: 0, events: [{ name: 'model.retry', attributes: { 'error.type': 'model_unavailable' } }] })

	const eve = await follow(t, gateway, 'eve')
	const tools = childrenOf(await rootSpan(await eve.complete('/tool no.such {}'))).filter(({ name }) =>
		name.startsWith('execute'),
	)
	t.match(tools, [{ name: 'execute_tool no.such', status: 2, attributes: { 'error.type': 'tool_unknown' } }])
})

void t.test('a sub-agent is a child of the call that started it, its delivery a child of the run', async (t) => {
	const ada = await follow(t, gateway, 'cleo')
	const run_id = await ada.complete('/tool subagent.spawn {"prompt": "look around"}')
	const child = String((await ada.waitFor(run_id, 'subagent.spawned')).payload.run_id)
	const [run, sub] = [await rootSpan(run_id), await rootSpan(child)]
	const spawn = childrenOf(run).find(({ name }) => name === 'execute_tool subagent.spawn')
	t.match(sub, { trace: traceOf(run_id), id: traceOf(child).slice(16), parent: spawn?.id, name: 'invoke_agent cleo' })
	t.ok(spawn && spawn.start <= sub.start && spawn.end >= sub.end, 'the call lasts at least as long as the sub-agent')
	t.strictSame(
		run.events.map(({ name }) => name),
		['run.paused', 'run.resumed'],
	)

	const loose = await ada.complete('/tool subagent.spawn {"prompt": "look there", "wait": false}')
	const other = String((await ada.waitFor(loose, 'subagent.spawned')).payload.run_id)
	const top = traceOf(loose).slice(16)
	const delivered = await collector.span(({ parent, name }) => parent === top && name === 'invoke_agent cleo')
	t.equal(delivered.attributes['svc.run.trigger'], 'subagent')
	const spawned = childrenOf(await rootSpan(loose)).find(({ name }) => name === 'execute_tool subagent.spawn')
	t.equal((await rootSpan(other)).parent, spawned?.id)
})

void t.test('a run links to the span of its caller and has the id of the request', async (t) => {
	await follow(t, gateway, 'ada')
	const caller = { trace: '4bf92f3577b34da6a3ce929d0e0e4736', id: '00f067aa0ba902b7' }
	const post = (traceparent: string) =>
		gateway.request('POST', '/v1/agents/ada/runs', {
			body: { prompt: 'hello' },
			headers: { traceparent, 'x-request-id': 'order.42' },
		})
	const { body } = await post(`00-${caller.trace}-${caller.id}-01`)
	const run = await collector.span((span) => span.attributes['svc.run.id'] === body.run_id)
	t.strictSame(run.links, [caller])
	t.equal(run.trace, traceOf(body.run_id), 'the trace id is derived from the run id')
	t.equal(run.attributes['svc.request.id'], 'order.42')
	for (const invalid of ['nonsense', `00-${'0'.repeat(32)}-${caller.id}-01`, `ff-${caller.trace}-${caller.id}-01`]) {
		const { status, body: plain } = await post(invalid)
		t.equal(status, 200)
		t.strictSame((await rootSpan(plain.run_id)).links, [], invalid)
	}
})

void t.test('stopping a run ends the spans of its calls in progress', async (t) => {
	const dan = await follow(t, gateway, 'dan', { config: { provider: 'held' } })
	const run_id = await dan.start('slow')
	await held.called('slow')
	t.equal((await dan.call('stop', {})).status, 200)
	const run = await rootSpan(run_id)
	t.match(run, { status: 0, attributes: { 'svc.run.outcome': 'stopped' } })
	t.match(childrenOf(run), [{ name: 'chat held-1', status: 2, attributes: { 'error.type': 'stopped' } }])
})
