/** A server, by the official SDK, that changes its list of tools during a run. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import type { ManualCall } from '../../support/manual-model.ts'
import { add, servers, stdio, until } from '../../support/mcp.ts'
import { follow } from '../../support/runs.ts'

const model = await startManualModel()
const gateway = await startGateway({
	config: `default_provider: held\nproviders: {held: {kind: openai, base_url: '${model.url}', model: m}}\n`,
})
t.teardown(async () => {
	await gateway.stop()
	await model.stop()
})

const toolsOf = ({ body }: ManualCall): Map<string, string> =>
	new Map((body.tools as Answer[]).map(({ function: { name, description } }) => [name, description]))

void t.test('a run keeps the list of tools that it started with, and the next run gets the new list', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const { id } = await add(ada, stdio('own', servers.sdk))
	const lateTool = (server: Answer): Answer => server.tools.find((tool: Answer) => tool.name === 'late')

	const first = await ada.start('first')
	;(await model.called('first')).callTool('mcp__own__grow', '{"name": "late"}')
	await until(gateway, 'ada', id, (server) => lateTool(server) !== undefined)
	const inFlight = await model.called('first', 2)
	t.notOk(toolsOf(inFlight).has('mcp__own__late'))
	inFlight.callTool('mcp__own__roots', '{}')
	const later = await model.called('first', 3)
	t.strictSame(toolsOf(later), toolsOf(inFlight), 'the same after the gateway has read the new list')
	later.answer('done')
	await ada.ended(first)

	const second = await ada.start('second')
	const next = await model.called('second')
	t.equal(toolsOf(next).get('mcp__own__late'), 'Small.')

	next.callTool('mcp__own__change', '{"name": "late"}')
	const held = lateTool(await until(gateway, 'ada', id, (server) => lateTool(server).held))
	t.match(held, { description: /^Large/, accepted: { description: 'Small.' } })
	const unchanged = await model.called('second', 2)
	t.strictSame(toolsOf(unchanged), toolsOf(next))
	unchanged.callTool('mcp__own__late', '{}')
	const refusal = await model.called('second', 3)
	t.match(JSON.stringify((refusal.body.messages as Answer[]).at(-1)), /mcp__own__late/)
	t.match((await ada.waitFor(second, 'primitive.failed', 1)).payload, { code: 'tool_unknown' })
	refusal.answer('done')
	await ada.ended(second)

	const third = await ada.start('third')
	const without = await model.called('third')
	t.notOk(toolsOf(without).has('mcp__own__late'), 'held back until it is accepted')
	without.answer('done')
	await ada.ended(third)

	t.equal(
		(await gateway.request('POST', `/v1/agents/ada/mcp/${id}/accept`, { body: { digests: [held.digest] } })).status,
		200,
	)
	const fourth = await ada.start('fourth')
	const accepted = await model.called('fourth')
	t.match(toolsOf(accepted).get('mcp__own__late'), /^Large/)
	accepted.answer('done')
	await ada.ended(fourth)
})
