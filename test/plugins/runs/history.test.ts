/** Earlier turns in the request to a model. */
import t from 'tap'
import { makeHome, startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'

interface Message {
	role: string
	content: string | null
	tool_calls?: { id: string }[]
	tool_call_id?: string
}

void t.test('a request has earlier calls and results, and the turns that failed or were stopped', async (t) => {
	const model = await startManualModel()
	const home = makeHome({ config: providersAt({ held: model.url }) }, t)
	t.teardown(() => model.stop())
	const first = await startGateway({ home })
	t.teardown(() => first.stop())
	const ada = await follow(t, first, 'ada', { config: { limits: { steps: 2 } } })

	const noted = await ada.start('Note blue.')
	;(await model.called('Note blue.')).callTool('memory_stm_write', '{"key":"colour","value":"blue"}', '')
	;(await model.called('Note blue.', 2)).answer('noted')
	await ada.ended(noted)
	const failed = await ada.start('Note red.')
	;(await model.called('Note red.')).callTool('memory_stm_write', '{"key":"colour","value":"red"}', '')
	;(await model.called('Note red.', 2)).callTool('memory_stm_read', '{}')
	await ada.ended(failed)
	const stopped = await ada.start('Wait.')
	await model.called('Wait.')
	await first.request('POST', `/v1/runs/${stopped}/cancel`)

	const requestFor = async (prompt: string, agent: Followed): Promise<Message[]> => {
		const run = await agent.start(prompt)
		const call = await model.called(prompt)
		call.answer('so')
		await agent.ended(run)
		return (call.body.messages as Message[]).filter(({ role }) => role !== 'system')
	}
	const messages = await requestFor('And now?', ada)
	t.match(messages.slice(0, 8), [
		{ role: 'user', content: 'Note blue.' },
		{ role: 'assistant', tool_calls: [{ function: { arguments: '{"key":"colour","value":"blue"}' } }] },
		{ role: 'tool', content: '{"key":"colour","notes":1}' },
		{ role: 'assistant', content: 'Well, noted' },
		{ role: 'user', content: 'Note red.' },
		{ role: 'assistant', tool_calls: [{ function: { name: 'memory_stm_write' } }] },
		{ role: 'tool', content: '{"key":"colour","notes":1}' },
		{ role: 'assistant', content: /ended without an answer: the run made 2 model calls/ },
	])
	const stop = messages.findIndex(({ content }) => content === 'Wait.')
	t.match(messages[stop - 1], { role: 'assistant', content: /ended without an answer/ })
	t.match(messages[stop + 1], { role: 'assistant', content: /was stopped/ })
	const ids = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
	t.equal(new Set(ids).size, ids.length, 'ids of calls are unique')
	t.strictSame(
		messages.flatMap(({ tool_call_id = [] }) => tool_call_id),
		ids,
		'each call has its result',
	)

	await first.stop()
	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const after = await requestFor('And after the restart?', await follow(t, second, 'ada'))
	t.strictSame(after.slice(0, stop + 2), messages.slice(0, stop + 2), 'the journals contain the same')
})
