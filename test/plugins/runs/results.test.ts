/** Long results of tools: abridged for models, stored in full without secrets, deleted with their owner. */
import t from 'tap'
import { readResult, resultsKey } from '../../../plugins/runs/results.ts'
import type { RunRecord } from '../../../plugins/runs/contract.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'

const probe = contextProbe(`ctx.primitive({
	name: 'probe.repeat',
	description: 'Repeats a word.',
	parameters: ctx.joi.object({ word: ctx.joi.string().required(), times: ctx.joi.number().required() }),
	run: ({ word, times }) => word.repeat(times),
})`)

const model = await startModelServer()
const gateway = await startGateway({
	config: `${providersAt({ mock: model.url })}default_provider: mock\nplugins: { probe: true }\n`,
	files: probe.files,
})
t.teardown(() => gateway.stop())
t.teardown(() => model.stop())
const ctx = probe.context()

const repeat = (word: string, times: number) => ({ tools: [{ name: 'probe_repeat', arguments: { word, times } }] })

void t.test('a long result is abridged for the model and readable in full, until the agent is deleted', async (t) => {
	const ada = await follow(t, gateway, 'ada', { config: { limits: { result_characters: 2_000 } } })
	model.on('long', repeat('word ', 10_000), 'I saw it.')
	const run_id = await ada.complete('long')

	const seen = model.requests('long').at(-1)?.messages.at(-1)
	const content = String(seen?.content)
	t.equal(seen?.role, 'tool')
	t.match(content, /^(word ){300}\n\[… 48000 of 50000 characters are omitted here; read on with conversation_read \{/)
	t.ok(content.endsWith('word word ') && content.length < 2_300)

	const { agent_uid: uid } = (await ctx.use('runs').get(run_id)) as RunRecord
	const { result_id } = JSON.parse(/\{.*\}/.exec(content)?.[0] ?? '') as { result_id: string }
	const part = await readResult(ctx.store, uid, result_id, { offset: 40_000, limit: 20_000 })
	t.strictSame(part, { text: 'word '.repeat(2_000), total: 50_000, next_offset: null })

	await gateway.request('DELETE', '/v1/agents/ada')
	t.strictSame(await Array.fromAsync(ctx.store.list(resultsKey(uid, run_id))), [])
})

void t.test('a long result is deleted with its conversation', async (t) => {
	const ada = await follow(t, gateway, 'bob')
	model.on('deleted', repeat('word ', 10_000), 'I saw it.')
	const run_id = await ada.complete('deleted')
	const { agent_uid: uid } = (await ctx.use('runs').get(run_id)) as RunRecord
	t.not((await Array.fromAsync(ctx.store.list(resultsKey(uid, run_id)))).length, 0)
	await ctx.use('runs').clear({ name: 'bob', uid })
	t.strictSame(await Array.fromAsync(ctx.store.list(resultsKey(uid, run_id))), [])
})

void t.test('stored pieces contain no secret, also at their borders', async (t) => {
	const ada = await follow(t, gateway, 'cid')
	const value = 'sk-of-a-very-long-secret-0123456789'
	const secret = await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'KEY', value } })
	await gateway.request('POST', '/v1/vault/grants', { body: { secret_id: secret.body.id, agent_id: 'cid' } })
	model.on('read it', { tools: [{ name: 'vault_read', arguments: { name: 'KEY' } }] }, 'Read.')
	await ada.complete('read it')
	model.on('secret one', repeat(`${value} `, 20_000), 'I saw it.')
	const run_id = await ada.complete('secret one')
	const { agent_uid: uid } = (await ctx.use('runs').get(run_id)) as RunRecord
	const pieces = await Array.fromAsync(ctx.store.list<{ text: string }>(resultsKey(uid, run_id)))
	t.ok(pieces.length > 1)
	const text = pieces.map((piece) => piece.value.text).join('')
	t.notOk(text.includes('sk-of'))
	t.ok(text === '[redacted:KEY] '.repeat(20_000))
	t.notOk(String(model.requests('secret one').at(-1)?.messages.at(-1)?.content).includes(value))
})

void t.test('an unknown or malformed result id is not found', async (t) => {
	const ada = await follow(t, gateway, 'dan')
	const ids = ['::', ':a', 'a:b\0', '\ud800:a', 'nothing', `${'x'.repeat(150)}:a`]
	const tools = ids.map((result_id) => ({ name: 'conversation_read', arguments: { result_id } }))
	model.on('wrong ids', { tools }, 'I saw it.')
	const run_id = await ada.complete('wrong ids')
	const failed = ada.eventsOf(run_id).filter(({ event_type }) => event_type === 'primitive.failed')
	t.strictSame(
		failed.map(({ payload }) => payload.code),
		ids.map(() => 'not_found'),
	)
})

void t.test('parts of turns and of search results begin and end between characters', async (t) => {
	const ada = await follow(t, gateway, 'eve')
	const prompt = `${'x'.repeat(93)}😀 ${'😀'.repeat(59)} harbour ${'😀'.repeat(200)}`
	model.on(prompt, 'Seen.')
	const run_id = await ada.complete(prompt)
	const read = (offset: number, limit: number) => ({ name: 'conversation_read', arguments: { run_id, offset, limit } })
	const searched = { name: 'conversation_search', arguments: { query: 'harbour' } }
	model.on('in parts', { tools: [read(0, 100), read(101, 1), read(102, 1), searched] }, 'Read.')
	const reading = await ada.complete('in parts')
	const [first, second, third, found] = ada
		.eventsOf(reading)
		.filter(({ event_type }) => event_type === 'primitive.result')
		.map(({ payload }) => JSON.parse(String(payload.result)))
	t.match(first, { text: `user: ${'x'.repeat(93)}😀`, next_offset: 101 })
	t.match(second, { text: ' ', next_offset: 102 })
	t.match(third, { text: '😀', next_offset: 104 })
	t.match(found.turns, [{ text: /^(😀)+ harbour (😀)+$/ }])
})

void t.test('a part of a stored result ends between characters, and is never empty before the end', async (t) => {
	const ada = await follow(t, gateway, 'fay', { config: { limits: { result_characters: 2_000 } } })
	model.on('smiles', repeat('😀', 2_000), 'I saw it.')
	const run_id = await ada.complete('smiles')
	const { agent_uid: uid } = (await ctx.use('runs').get(run_id)) as RunRecord
	const content = String(model.requests('smiles').at(-1)?.messages.at(-1)?.content)
	const { result_id } = JSON.parse(/\{.*\}/.exec(content)?.[0] ?? '') as { result_id: string }
	for (const [limit, length] of [
		[1, 2],
		[2, 2],
		[3, 4],
	] as const) {
		const part = await readResult(ctx.store, uid, result_id, { offset: 0, limit })
		t.strictSame(part, { text: '😀'.repeat(length / 2), total: 4_000, next_offset: length })
	}
})
