import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { startScriptedModels } from '../../support/scripted-model.ts'

const LIMIT = 64 * 1024
const KEY = 'sk-0123456789-abcdefghijklmnopqrstuvwxyz'

void t.test('reasoning is truncated without a part of a secret', async (t) => {
	const server = await startScriptedModels()
	const reasoning_content = `${'thought '.repeat(LIMIT / 8).slice(20)}${KEY} and ${'more '.repeat(100)}`
	const call = { index: 0, id: 'a', function: { name: 'memory_stm_read', arguments: '{}' } }
	const { url, requests } = server.add((_request, n) => ({
		sse: [
			{ choices: [{ delta: { reasoning_content, ...(n === 0 ? { tool_calls: [call] } : { content: 'Yes.' }) } }] },
			{ choices: [{ delta: {}, finish_reason: n === 0 ? 'tool_calls' : 'stop' }] },
		],
	}))
	const gateway = await startGateway({
		config: `providers:\n  p: { kind: openai, base_url: '${url}', model: m, api_key: ${KEY} }\ndefault_provider: p\n`,
	})
	t.teardown(async () => {
		await gateway.stop()
		await server.stop()
	})
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.complete('Is it?')
	t.equal(requests.length, 2)
	const thoughts = ada.eventsOf(run_id).filter(({ event_type }) => event_type === 'message.reasoning')
	t.equal(thoughts.length, 2)
	for (const { payload } of thoughts) {
		const content = String(payload.content)
		t.ok(content.length < LIMIT + 100)
		t.match(content.slice(-60), /thought \[redacted:provider:p\]…$/)
		t.notOk(content.includes(KEY.slice(0, 8)))
	}
})
