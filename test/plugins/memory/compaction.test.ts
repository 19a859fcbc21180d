/** Compaction: what is merged, what happens to the originals, and what an interrupted compaction leaves. */
import t from 'tap'
import type { Test } from 'tap'
import { consolidatedIn, promptOf } from '../../../plugins/memory/compaction/consolidation.ts'
import { hashTerms } from '../../../plugins/memory/hashing.ts'
import { termsOf } from '../../../plugins/memory/words.ts'
import { repetitions, sentencesOf } from '../../../plugins/memory/compaction/repetitions.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { startModelServer } from '../../support/model-server.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { assertError } from '../../support/error-response.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const { files, context } = contextProbe()

async function fill(gateway: TestGateway, contents: readonly string[]): Promise<string[]> {
	const ids: string[] = []
	for (const content of contents) {
		const { body } = await gateway.request('POST', '/v1/agents/ada/memory', { body: { content, tags: ['kept'] } })
		ids.push(body.id)
	}
	return ids
}

async function all(gateway: TestGateway): Promise<Answer[]> {
	return (await gateway.request('GET', '/v1/agents/ada/memory?limit=100')).body.memories
}

const textsOf = (memories: { content: string }[]): string[] => memories.map(({ content }) => content).toSorted()

async function compact(agent: Followed): Promise<Answer> {
	const { status, body } = await agent.call('memory/compact', {})
	if (status !== 200) throw new Error(`compaction was answered with ${status}`)
	return (
		await agent.stream.waitFor(
			(event) => event.event_type === 'memory.compacted' && event.payload.compaction_id === body.compaction_id,
		)
	).payload
}

const TWICE = ['Rex is a dog.', 'The bill is paid.', 'rex is THE dog', 'Rex is a dog. He is seven.', 'Rex is no dog.']

const withoutModel = await startGateway({ config: 'plugins: {probe: true}\n', files })
t.teardown(() => withoutModel.stop())
const lent = context()
const model = await startModelServer()
const held = await startManualModel()
const modelled = await startGateway({
	config: `default_provider: mock
providers:
  mock: {kind: openai, base_url: "${model.url}", model: chat}
  held: {kind: openai, base_url: "${held.url}", model: chat}
`,
})
t.teardown(async () => {
	await modelled.stop()
	await Promise.all([model.stop(), held.stop()])
})

/** A new agent for each test, deleted at its end. */
async function newAgent(t: Test, gateway: TestGateway, config = {}): Promise<Followed> {
	t.teardown(() => gateway.request('DELETE', '/v1/agents/ada'))
	return follow(t, gateway, 'ada', { config })
}

async function offline(t: Test): Promise<{ gateway: TestGateway; agent: Followed }> {
	return { gateway: withoutModel, agent: await newAgent(t, withoutModel) }
}

void t.test('without a model, repetitions are merged, and no sentence is lost', async (t) => {
	const { gateway, agent } = await offline(t)
	const ids = await fill(gateway, TWICE)
	t.match(await compact(agent), { status: 'completed', memories_before: 5, memories_after: 3, merged: 1 })
	const kept = await all(gateway)
	t.strictSame(textsOf(kept), ['Rex is a dog. He is seven.', 'Rex is no dog.', 'The bill is paid.'])
	const made = kept.find(({ content }) => content.includes('seven'))
	t.notOk(ids.includes(made.id))
	t.strictSame(made.tags, ['kept'])
	const { body } = await gateway.request('GET', '/v1/agents/ada/memory/search?q=is%20Rex%20seven%20already')
	t.equal(body[0].id, made.id, 'it is found at once')
	t.match(await compact(agent), { status: 'completed', memories_before: 3, memories_after: 3, merged: 0 })
})

void t.test('merging a newer memory that repeats part of an older one loses nothing of the rest', async (t) => {
	const { gateway, agent } = await offline(t)
	await fill(gateway, ['Rex is a dog. He is seven.', 'Rex is a dog.'])
	t.match(await compact(agent), { status: 'completed', memories_after: 1, merged: 1 })
	t.strictSame(textsOf(await all(gateway)), ['Rex is a dog. He is seven.'])
})

void t.test('a replaced memory is not merged with a current one', async (t) => {
	const { gateway, agent } = await offline(t)
	const [rome] = await fill(gateway, ['Ada lives in Rome. Ada has a dog.', 'Ada has a dog.'])
	const { body: oslo } = await gateway.request('POST', '/v1/agents/ada/memory', {
		body: { content: 'Now it is Oslo.', replaces: [rome] },
	})
	t.match(await compact(agent), { status: 'completed', merged: 0 })
	t.match((await all(gateway)).at(-1), { id: rome, replaced_by: oslo.id })
})

void t.test('a replaced memory links to the merged form of its successor; an undo restores the link', async (t) => {
	const { gateway, agent } = await offline(t)
	const store = async (content: string, replaces: string[] = []): Promise<string> =>
		(await agent.call('memory', { content, replaces })).body.id
	const found = async (): Promise<Answer> => (await agent.call('memory/search?q=Where%20lives%20Bob&limit=2')).body
	const rome = await store('Bob lives in Rome now.')
	const oslo = await store('Oslo, because of the job.', [rome])
	await store('Oslo, because of the job. Since May.')
	const linked = async (): Promise<unknown> => (await all(gateway)).find(({ id }) => id === rome)?.replaced_by

	const first = await compact(agent)
	const merged = (await all(gateway)).find(({ content }) => content.includes('May'))
	t.equal(await linked(), merged.id)
	t.strictSame(
		(await found()).map(({ id }: Answer) => id),
		[merged.id, rome],
		'the outdated one is found below its successor',
	)
	await store('Oslo, because of the job. Since May. In a flat.')
	const second = await compact(agent)
	t.not(await linked(), merged.id)
	for (const [{ compaction_id }, id] of [
		[second, merged.id],
		[first, oslo],
	] as const) {
		await agent.call(`memory/compactions/${compaction_id}/undo`, {})
		t.equal(await linked(), id)
	}

	await compact(agent)
	t.equal((await agent.call('memory', { content: 'Bob lives in Rome now.' })).body.id, rome)
	const now = await all(gateway)
	t.notOk(now.find(({ id }) => id === rome).replaced_by, 'stored again, it is current again')
	t.equal(now.find(({ content }) => content.includes('flat')).replaced_by, rome)
})

void t.test('a memory that replaced a merged one replaces its originals after an undo', async (t) => {
	const { gateway, agent } = await offline(t)
	await fill(gateway, ['Bob has a dog.', 'Bob has a dog. It is Rex.'])
	const { compaction_id } = await compact(agent)
	const [merged] = await all(gateway)
	const { body: cat } = await agent.call('memory', { content: 'He has a cat.', replaces: [merged.id] })
	await agent.call(`memory/compactions/${compaction_id}/undo`, {})
	const [newest, ...originals] = await all(gateway)
	t.match(originals, [{ replaced_by: cat.id }, { replaced_by: cat.id }])
	t.strictSame(
		newest.replaces.toReversed(),
		originals.map(({ id }) => id),
	)
	await gateway.request('DELETE', `/v1/agents/ada/memory/${cat.id}`)
	t.notOk(
		(await all(gateway)).some(({ replaced_by }) => replaced_by !== undefined),
		'without it they are current',
	)
})

void t.test('a memory that was merged from many and replaces a hundred can be forgotten', async (t) => {
	const { gateway, agent } = await offline(t)
	const words = Array.from({ length: 104 }, (_, n) => n.toString(2).replaceAll('0', 'o').replaceAll('1', 'i'))
	const older = await fill(gateway, words)
	for (let n = 0; n < 13; n++)
		await gateway.request('POST', '/v1/agents/ada/memory', {
			body: { content: `Rex is a dog${'!'.repeat(n)}`, replaces: older.slice(8 * n, 8 * n + 8) },
		})
	t.match(await compact(agent), { status: 'completed', memories_after: 105, merged: 1 })
	const [made] = await all(gateway)
	t.equal(made.replaces.length, 104)
	t.equal((await gateway.request('DELETE', `/v1/agents/ada/memory/${made.id}`)).status, 204)
	t.ok((await all(gateway)).some(({ replaced_by }) => replaced_by === undefined))
})

void t.test('without a model, entries that only the built-in embedder considers equal stay separate', async (t) => {
	const { gateway, agent } = await offline(t)
	const different = [
		['Ada manages Bob.', 'Bob manages Ada.'],
		['The flight goes from Paris to Rome.', 'The flight goes from Rome to Paris.'],
		['Call the customer before the delivery.', 'Call the customer after the delivery.'],
		['Der Kunde mag Tee.', 'Der Kunde mag keinen Tee.'],
	]
	const cosineOf = ([first = '', second = '']: string[]): number => {
		const [a, b] = [hashTerms(termsOf(first).terms), hashTerms(termsOf(second).terms)]
		return a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)
	}
	for (const pair of different) t.ok(cosineOf(pair) > 0.99, pair.join(' / '))
	await fill(gateway, different.flat())
	t.match(await compact(agent), { status: 'completed', merged: 0 })
	t.strictSame(textsOf(await all(gateway)), different.flat().toSorted())
})

void t.test('an undo restores all memories', async (t) => {
	const { gateway, agent } = await offline(t)
	await fill(gateway, TWICE)
	const before = await all(gateway)
	const { compaction_id } = await compact(agent)
	const undo = (): Promise<Answer> => agent.call(`memory/compactions/${compaction_id}/undo`, {})
	const { status, body } = await undo()
	t.equal(status, 200)
	t.match(body, { compaction_id, status: 'undone', merged: 1 })
	await agent.stream.waitFor('memory.compaction_undone')
	t.strictSame(await all(gateway), before)
	const found = (await gateway.request('GET', '/v1/agents/ada/memory/search?q=Rex%20dog')).body
	t.strictSame(textsOf(found).filter((text) => text.toLowerCase().includes('rex')).length, 4)
	assertError(t, await undo(), { status: 409, code: 'conflict', message: /is undone/ })
	const unknown = await agent.call('memory/compactions/nothing/undo', {})
	assertError(t, unknown, { status: 404, code: 'not_found' })
})

void t.test('tags of merged memories are kept when the same content is stored again', async (t) => {
	const { gateway, agent } = await offline(t)
	const tags = (letter: string): string[] => Array.from({ length: 12 }, (_, n) => `${letter}${n}`)
	const store = (content: string, letter: string) =>
		gateway.request('POST', '/v1/agents/ada/memory', { body: { content, tags: tags(letter) } })
	await store('Rex is a dog', 'a')
	await store('Rex is a dog.', 'b')
	await compact(agent)
	t.equal((await store('Rex is a dog.', 'c')).status, 201)
	const [{ tags: kept }] = await all(gateway)
	t.strictSame(kept, [...tags('a'), ...tags('b')])
})

void t.test('forgetting a memory while its compaction is undone does not stop the undo', async (t) => {
	const { gateway, agent } = await offline(t)
	await fill(gateway, ['One.', 'one', 'Two.', 'two'])
	const { compaction_id } = await compact(agent)
	const made = (await all(gateway)).find(({ content }) => content === 'one')
	const forgotten = Promise.withResolvers<void>()
	const { store } = lent
	const { commit } = store
	// Forgets it after its group is read and before the commit that restores its originals.
	store.commit = async (scope, ops) => {
		if (ops.some(({ key, value }) => key[1] === 'memory' && key[2] === made.id && value === undefined)) {
			store.commit = commit
			await gateway.request('DELETE', `/v1/agents/ada/memory/${made.id}`)
			forgotten.resolve()
		}
		return commit.call(store, scope, ops)
	}
	t.teardown(() => (store.commit = commit))
	t.equal((await agent.call(`memory/compactions/${compaction_id}/undo`, {})).status, 200)
	await forgotten.promise
	t.strictSame(textsOf(await all(gateway)), ['Two.', 'two'])
})

void t.test('compactions are undone in reverse order', async (t) => {
	const { gateway, agent } = await offline(t)
	await fill(gateway, ['One.', 'one', 'Two.'])
	const first = await compact(agent)
	await fill(gateway, ['ONE!', 'two'])
	const second = await compact(agent)
	t.match(second, { merged: 2, memories_after: 2 })
	const undo = (id: unknown): Promise<Answer> => agent.call(`memory/compactions/${String(id)}/undo`, {})
	assertError(t, await undo(first.compaction_id), { status: 409, code: 'conflict', message: /came later/ })
	t.equal((await undo(second.compaction_id)).status, 200)
	t.equal((await undo(first.compaction_id)).status, 200)
	t.strictSame(textsOf(await all(gateway)), ['ONE!', 'One.', 'Two.', 'one', 'two'])
})

void t.test('forgetting a merged memory also removes its originals', async (t) => {
	const { gateway, agent } = await offline(t)
	await fill(gateway, ['One.', 'one', 'Two.'])
	await compact(agent)
	await fill(gateway, ['ONE!'])
	const { compaction_id } = await compact(agent)
	const made = (await all(gateway)).find(({ content }) => content === 'ONE!')
	t.equal((await gateway.request('DELETE', `/v1/agents/ada/memory/${made.id}`)).status, 204)
	const { uid } = await lent.use('agents').get('ada')
	const left: string[] = []
	for await (const { value } of lent.store.list([`agent:${uid}`])) left.push(JSON.stringify(value))
	t.notMatch(left.join('\n'), /"one"|"One\."|"ONE!"/i)
	t.equal((await agent.call(`memory/compactions/${compaction_id}/undo`, {})).status, 200)
	t.strictSame(textsOf(await all(gateway)), ['Two.'], 'an undo does not restore them')
})

const OLD = [
	'Maya lives in Lisbon, near the harbour.',
	'Maya has lived in Lisbon near the harbour since 2019.',
	...Array.from('abcdefghij', (letter) => `Recent thing ${letter}${letter} happened.`),
]

interface WithModel {
	gateway: TestGateway
	agent: Followed
	model: Awaited<ReturnType<typeof startModelServer>>
}

async function withModel(t: Test): Promise<WithModel> {
	model.mock.clearRequests()
	model.mock.clearFixtures()
	return { model, gateway: modelled, agent: await newAgent(t, modelled) }
}

void t.test('a model consolidates older memories that belong together', async (t) => {
	const { model, gateway, agent } = await withModel(t)
	const consolidated = 'Maya has lived in Lisbon, near the harbour, since 2019.'
	model.on('Some of these notes', JSON.stringify([{ from: [1, 2], content: consolidated }]))
	await fill(gateway, OLD)
	t.match(await compact(agent), { status: 'completed', memories_before: 12, memories_after: 11, merged: 1 })
	const texts = textsOf(await all(gateway))
	t.ok(texts.includes(consolidated))
	t.strictSame(
		texts.filter((text) => text.startsWith('Maya')),
		[consolidated],
	)
	const [request] = model.requests('Some of these notes')
	t.notOk(request?.tools, 'the model is offered no tools')
	const { body } = await gateway.request('GET', '/v1/agents/ada/history')
	t.strictSame(body, [], 'the conversation does not show it')
})

void t.test('an answer that loses a number, or is not JSON, changes nothing', async (t) => {
	const { model, gateway, agent } = await withModel(t)
	model.on(
		'Some of these notes',
		JSON.stringify([{ from: [1, 2], content: 'Maya lives in Lisbon.' }]),
		'I cannot do that.',
	)
	await fill(gateway, OLD)
	const before = await all(gateway)
	t.match(await compact(agent), { status: 'completed', merged: 0, memories_after: 12 })
	t.match(await compact(agent), { status: 'completed', merged: 0, memories_after: 12 })
	t.strictSame(await all(gateway), before)
})

void t.test('if the model fails nothing changes, not even repetitions', async (t) => {
	const { model, gateway, agent } = await withModel(t)
	model.on('Some of these notes', { status: 401, message: 'no such key' })
	await fill(gateway, ['Rex is a dog.', 'rex is a dog', ...OLD])
	const before = await all(gateway)
	const ended = await compact(agent)
	t.match(ended, { status: 'failed', merged: 0, error: /model/ })
	t.strictSame(await all(gateway), before)
	t.match((await agent.call('memory/compactions')).body[0], { status: 'failed', memories_after: null })
})

void t.test('a second compaction is refused while one is running', async (t) => {
	const agent = await newAgent(t, modelled, { provider: 'held' })
	await fill(modelled, OLD)
	t.equal((await agent.call('memory/compact', {})).status, 200)
	const call = await eventually(() => held.calls[0])
	assertError(t, await agent.call('memory/compact', {}), { status: 409, code: 'conflict', message: /in progress/ })
	t.equal((await agent.call('memory/compactions')).body[0].status, 'running')
	call?.answer('[]')
	await agent.stream.waitFor('memory.compacted')
	t.equal((await agent.call('memory/compact', {})).status, 200)
	;(await eventually(() => held.calls[1]))?.answer('[]')
	await agent.stream.waitFor('memory.compacted', 2)
})

void t.test('a compaction that a crash interrupted is completed, or has changed nothing', async (t) => {
	const home = makeHome({ config: 'plugins: {probe: true}\n', files }, t)
	const first = await startGateway({ home })
	const { store, use } = context()
	await first.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const ids = await fill(first, ['Alpha.', 'alpha', 'Beta.', 'beta', 'Gamma.'])
	const scopeOf = async (agent: string): Promise<string> => `agent:${(await use('agents').get(agent)).uid}`
	const scope = await scopeOf('ada')
	const record = {
		agent: 'ada',
		started_at: new Date().toISOString(),
		ended_at: null,
		memories_before: 5,
		memories_after: null,
		merged: 0,
		error: null,
	}
	const put = (key: string[], value: object): Promise<unknown> => store.put([scope, ...key], value)
	// c1: the process was killed while it planned; c2: it was killed after it had written its plan.
	await put(['memory-compaction', 'c1'], { ...record, compaction_id: 'c1', status: 'planning' })
	await put(['memory-compaction', 'c2'], { ...record, compaction_id: 'c2', status: 'applying' })
	for (const [group, originals] of [ids.slice(0, 2), ids.slice(2, 4)].entries()) {
		const made_by = { compaction: 'c2', group: String(group) }
		const made = { id: `made-${group}`, content: `Made ${group}.`, tags: [], created_at: record.started_at, made_by }
		await put(['memory-group', 'c2', String(group)], { ids: originals, made })
	}
	// c3: the plan cannot be read.
	await first.request('POST', '/v1/agents', { body: { name: 'aaron' } })
	const damaged = await scopeOf('aaron')
	const unreadable = { ...record, agent: 'aaron', compaction_id: 'c3', status: 'applying' }
	await store.put([damaged, 'memory-compaction', 'c3'], unreadable)
	await store.put([damaged, 'memory-group', 'c3', '0'], {})
	await first.stop()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const agent = await follow(t, second, 'ada')
	const compactions = await eventually<Answer[]>(
		async () => (await agent.call('memory/compactions')).body,
		(list) => list.every(({ status }) => status !== 'running'),
	)
	t.match(compactions, [
		{ compaction_id: 'c2', status: 'completed', merged: 2, memories_after: 3 },
		{ compaction_id: 'c1', status: 'failed', error: /stopped/ },
	])
	t.strictSame(textsOf(await all(second)), ['Gamma.', 'Made 0.', 'Made 1.'])
	t.equal((await agent.call('memory/compactions/c2/undo', {})).status, 200)
	t.strictSame(textsOf(await all(second)), ['Alpha.', 'Beta.', 'Gamma.', 'alpha', 'beta'])
})

void t.test('only the same sentences in the same words are a repetition', async (t) => {
	const groupsOf = (...contents: string[]): string[][] =>
		repetitions(
			contents.map((content, at) => sentencesOf(String(at), content)),
			40,
		)
	t.strictSame(groupsOf('Alice likes tea.', 'Alice does not like tea.', 'Alice likes teas'), [])
	t.strictSame(groupsOf('The cat sleeps!', 'a cat sleeps'), [['0', '1']])
	t.strictSame(groupsOf('A. B.', 'B', 'C', 'b. c. a'), [['0', '1', '2', '3']], 'all are part of the longest one')
	t.strictSame(groupsOf('猫は三歳です。', '猫は三歳です', '犬は三歳です'), [['0', '1']])
	t.strictSame(groupsOf('…', '!!', ''), [], 'contents without words are not compared')
	const many = groupsOf(...Array.from({ length: 100 }, () => 'same'))
	t.strictSame(
		many.map((group) => group.length),
		[40],
	)
})

void t.test('only valid groups of a model answer are used', async (t) => {
	const notes = ['Ines is 31.', 'Ines lives in Graz.', 'Tom has 2 cats.'].map((content, at) => ({
		id: String(at),
		content,
		created_at: '2026-01-01T00:00:00.000Z',
	}))
	const used = (answer: unknown): string[][] =>
		consolidatedIn(typeof answer === 'string' ? answer : JSON.stringify(answer), notes).map(({ ids }) => ids)
	const good = { from: [1, 2], content: 'Ines is 31 and lives in Graz.' }
	t.strictSame(used([good]), [['0', '1']])
	t.strictSame(used(`Here you are:\n\`\`\`json\n${JSON.stringify([good])}\n\`\`\``), [['0', '1']])
	for (const bad of [
		'',
		'nothing',
		'[',
		'{}',
		[null],
		[7],
		[{ from: [1], content: 'Ines is 31.' }],
		[{ from: [1, 1], content: 'Ines is 31.' }],
		[{ from: [1, 9], content: 'Ines is 31.' }],
		[{ from: ['1', '2'], content: 'Ines is 31.' }],
		[{ from: [1, 2], content: '' }],
		[{ from: [1, 2], content: 'Ines lives in Graz.' }],
		[{ from: [1, 2], content: `Ines is 31. ${'x'.repeat(300)}` }],
	]) {
		t.strictSame(used(bad), [], JSON.stringify(bad).slice(0, 60))
	}
	t.strictSame(used([good, { from: [2, 3], content: 'Tom has 2 cats in Graz.' }]), [['0', '1']], 'each note once')
	t.match(promptOf([{ id: 'x', content: 'a\n{"note": 9}', created_at: '2026-01-01' }]), /\\n\{\\"note\\": 9\}/)
})
