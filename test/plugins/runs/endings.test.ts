/** Runs whose model returns empty or truncated answers, or repeats calls. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'

const model = await startModelServer()
const gateway = await startGateway({
	config: `${providersAt({ mock: model.url })}default_provider: mock\nplugins: { openai-api: true }\n`,
})
t.teardown(() => gateway.stop())
t.teardown(() => model.stop())
const ada = await follow(t, gateway, 'ada')

void t.test('an empty answer is retried, and never completes a run', async (t) => {
	model.on('say something', { text: '' }, { text: '   ' }, 'unused')
	model.on(/your answer was empty/, 'Something.')
	const run_id = await ada.complete('say something')
	t.match(await ada.read(run_id), { answer: 'Something.', finish_reason: 'stop' })
	t.equal(ada.typesOf(run_id).filter((type) => type === 'model.retry').length, 2)

	model.on('say nothing', { text: '', finishReason: 'content_filter' })
	const filtered = await ada.start('say nothing')
	t.match((await ada.ended(filtered)).payload, { code: 'model_filtered' })
	t.match(await ada.read(filtered), { status: 'failed', answer: null, finish_reason: null })
})

void t.test('a truncated answer is continued, and streamed as one', async (t) => {
	const usage = { prompt_tokens: 10, completion_tokens: 5 }
	model.on('tell a story', { text: 'Once upon a time there was', finishReason: 'length', usage })
	model.on(/was cut off/, { text: ' a gateway.', usage })
	const run_id = await ada.complete('tell a story')
	const answer = 'Once upon a time there was a gateway.'
	t.match(await ada.read(run_id), {
		answer,
		finish_reason: 'stop',
		usage: { input_tokens: 20, output_tokens: 10 },
	})
	t.match((await ada.waitFor(run_id, 'model.continued')).payload, { characters: 26 })
	const pieces = ada.stream.events.filter((event) => event.run_id === run_id && event.event_type === 'model.stream')
	t.equal(pieces.map(({ payload }) => payload.content).join(''), answer)
	const reply = await gateway.request('POST', '/v1/chat/completions', {
		body: { model: 'ada', stream: true, messages: [{ role: 'user', content: 'tell a story' }] },
	})
	t.equal(reply.status, 200)
	const deltas = String(reply.body).match(/(?<="content":)"[^"]*"/g) ?? []
	t.equal(deltas.map((delta) => JSON.parse(delta) as string).join(''), answer)
})

void t.test('a truncated answer is not continued above the token limit of the run', async (t) => {
	const bob = await follow(t, gateway, 'bob', { config: { limits: { tokens: 1_000 } } })
	const usage = { prompt_tokens: 900, completion_tokens: 200 }
	model.on('tell without end', { text: 'Once upon', finishReason: 'length', usage })
	const run_id = await bob.complete('tell without end')
	t.match(await bob.read(run_id), { answer: 'Once upon', finish_reason: 'length' })
	t.equal(model.requests('tell without end').length, 1)
	t.equal(bob.typesOf(run_id).filter((type) => type === 'model.continued').length, 0)
})

void t.test('repeated calls with the same result add remarks, then the run ends with an answer', async (t) => {
	const again = { tools: [{ name: 'memory_stm_read', arguments: { key: 'none' } }] }
	model.on('go round', ...Array.from({ length: 6 }, () => again), 'I found no note.')
	const run_id = await ada.complete('go round')
	t.match(await ada.read(run_id), { answer: 'I found no note.', finish_reason: 'repeated_calls' })
	const remarks = ada.eventsOf(run_id).filter((event) => event.event_type === 'message.remark')
	t.match(remarks, [
		{ payload: { about: 'repeated_calls', content: /3 times in a row/ } },
		{ payload: { about: 'repeated_calls', content: /This is the last call/ } },
	])
	t.equal(remarks.length, 2)
	t.equal(model.requests('go round').length, 7)
	t.notOk(model.requests('go round').at(-1)?.tools)
})

void t.test('the error about invalid arguments quotes them', async (t) => {
	model.on('write badly', { tools: [{ name: 'memory_stm_read', arguments: '{"key": ada}' }] }, 'Sorry.')
	await ada.complete('write badly')
	const result = model.requests('write badly').at(-1)?.messages.at(-1)
	t.match(result?.content, 'are not JSON')
	t.match(result?.content, String.raw`You wrote: {\"key\": ada}`)
})
