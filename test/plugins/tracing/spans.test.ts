/** Runs as a collector sees them. */
import t from 'tap'
import { startCollector } from '../../support/collector.ts'
import type { TestSpan } from '../../support/collector.ts'
import { startGateway } from '../../support/gateway.ts'
import { startHeldModel } from '../../support/held-model.ts'
import { startModelServer } from '../../support/model-server.ts'
import { follow } from '../../support/runs.ts'
import { addSkill, programText } from '../../support/skills.ts'

const collector = await startCollector()
t.teardown(() => collector.stop())
const model = await startModelServer()
t.teardown(() => model.stop())
const held = await startHeldModel()
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
const root = (run_id: string): Promise<TestSpan> =>
	collector.span((span) => span.attributes['svc.run.id'] === run_id && span.links.length === 0)
const below = (span: TestSpan): TestSpan[] =>
	collector.spans.filter((one) => one.parent === span.id).toSorted((a, b) => (a.start < b.start ? -1 : 1))

void t.test('a run with its model calls and tools', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.complete('/tool memory.store {"content": "Berlin is nice"}')
	const run = await root(run_id)
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
	const children = below(run)
	t.strictSame(
		children.map(({ name, kind, trace }) => [name, kind, trace]),
		[
			['chat offline', 3, run.trace],
			['execute_tool memory.store', 1, run.trace],
			['chat offline', 3, run.trace],
		],
	)
	for (const one of children) t.ok(one.start >= run.start && one.end <= run.end && one.end >= one.start, one.name)
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
		'no content',
	)
})

void t.test('a primitive within a skill stands below it', async (t) => {
	const eve = await follow(t, gateway, 'eve')
	const permissions = 'permissions:\n  primitives: [memory.stm_read]'
	await addSkill(gateway, 'eve', programText('noter', `return svc.primitive('memory.stm_read', {})`, permissions))
	const run = await root(await eve.complete('/tool skill_noter {}'))
	const [skill] = below(run).filter(({ name }) => name === 'execute_tool noter')
	t.ok(skill)
	t.strictSame(skill && below(skill).map(({ name }) => name), ['execute_tool memory.stm_read'])
})

void t.test('what fails says why, by its code alone', async (t) => {
	model.on('refuse', { status: 400, message: 'SECRET-WORDS' })
	model.on('again', { status: 500 }, 'It works.')
	const bob = await follow(t, gateway, 'bob', { config: { provider: 'lab' } })
	const failed = await root(await bob.start('refuse'))
	t.match(failed, { status: 2, attributes: { 'svc.run.outcome': 'failed', 'error.type': 'model_rejected' } })
	const calls = below(failed)
	t.match(calls[0], {
		name: 'chat small-1',
		status: 2,
		attributes: { 'gen_ai.provider.name': 'lab', 'error.type': 'model_rejected' },
	})
	t.notMatch(
		JSON.stringify(collector.spans, (_, value: unknown) => (typeof value === 'bigint' ? 0 : value)),
		'SECRET-WORDS',
	)

	const [call] = below(await root(await bob.complete('again')))
	t.match(call, { status: 0, events: [{ name: 'model.retry', attributes: { 'error.type': 'model_unavailable' } }] })

	const eve = await follow(t, gateway, 'eve')
	const tools = below(await root(await eve.complete('/tool no.such {}'))).filter(({ name }) =>
		name.startsWith('execute'),
	)
	t.match(tools, [{ name: 'execute_tool no.such', status: 2, attributes: { 'error.type': 'tool_unknown' } }])
})

void t.test('a sub-agent stands below the call that started it, and its result below the run', async (t) => {
	const ada = await follow(t, gateway, 'cleo')
	const run_id = await ada.complete('/tool subagent.spawn {"prompt": "look around"}')
	const child = String((await ada.heard(run_id, 'subagent.spawned')).payload.run_id)
	const [run, sub] = [await root(run_id), await root(child)]
	const spawn = below(run).find(({ name }) => name === 'execute_tool subagent.spawn')
	t.match(sub, { trace: traceOf(run_id), id: traceOf(child).slice(16), parent: spawn?.id, name: 'invoke_agent cleo' })
	t.ok(spawn && spawn.start <= sub.start && spawn.end >= sub.end, 'and within it')
	t.strictSame(
		run.events.map(({ name }) => name),
		['run.paused', 'run.resumed'],
	)

	const loose = await ada.complete('/tool subagent.spawn {"prompt": "look there", "wait": false}')
	const other = String((await ada.heard(loose, 'subagent.spawned')).payload.run_id)
	const top = traceOf(loose).slice(16)
	const delivered = await collector.span(({ parent, name }) => parent === top && name === 'invoke_agent cleo')
	t.equal(delivered.attributes['svc.run.trigger'], 'subagent')
	const spawned = below(await root(loose)).find(({ name }) => name === 'execute_tool subagent.spawn')
	t.equal((await root(other)).parent, spawned?.id)
})

void t.test("the caller's own span is linked, and its request named", async (t) => {
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
	t.equal(run.trace, traceOf(body.run_id), 'its trace still follows from its id')
	t.equal(run.attributes['svc.request.id'], 'order.42')
	for (const wrong of ['nonsense', `00-${'0'.repeat(32)}-${caller.id}-01`, `ff-${caller.trace}-${caller.id}-01`]) {
		const { status, body: plain } = await post(wrong)
		t.equal(status, 200)
		t.strictSame((await root(plain.run_id)).links, [], wrong)
	}
})

void t.test('a stopped run ends with what is under way in it', async (t) => {
	const dan = await follow(t, gateway, 'dan', { config: { provider: 'held' } })
	const run_id = await dan.start('slow')
	await held.called('slow')
	t.equal((await dan.call('stop', {})).status, 200)
	const run = await root(run_id)
	t.match(run, { status: 0, attributes: { 'svc.run.outcome': 'stopped' } })
	t.match(below(run), [{ name: 'chat held-1', status: 2, attributes: { 'error.type': 'stopped' } }])
})
