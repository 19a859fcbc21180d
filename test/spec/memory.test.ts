/** Long-term memory over HTTP: the spec's rows, the primitives of runs, and the separation of agents. */
import fc from 'fast-check'
import t from 'tap'
import { addAgent, addToken } from '../support/add.ts'
import { arbitraryText } from '../support/arbitrary-text.ts'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply } from '../support/gateway.ts'
import { isProperResponse, assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Adds an agent with memories, and returns their ids. */
async function make(name: string, contents: string[] = []): Promise<string[]> {
	await addAgent(gateway, name)
	const ids: string[] = []
	for (const content of contents) ids.push((await store(name, { content })).body.id)
	return ids
}

function store(name: string, body: unknown): Promise<Reply<Answer>> {
	return gateway.request('POST', `/v1/agents/${name}/memory`, { body })
}

function search(name: string, q: string, more = ''): Promise<Reply<Answer>> {
	return gateway.request('GET', `/v1/agents/${name}/memory/search?q=${encodeURIComponent(q)}${more}`)
}

/** Calls a tool in a run, and returns its result or its error. */
async function callTool(agent: Followed, tool: string, args: object): Promise<Answer> {
	const run_id = await agent.complete(`/tool ${tool} ${JSON.stringify(args)}`)
	const event = agent.eventsOf(run_id).find((one) => /^primitive\.(result|failed)$/.test(one.event_type))
	return event?.event_type === 'primitive.result' ? JSON.parse(String(event.payload.result)) : event?.payload
}

void t.test('a search returns id, content, similarity and created_at, best first', async (t) => {
	const [berlin, rex] = await make('finds', ['The user lives in Berlin.', 'Alice has a dog called Rex.'])
	const { status, body } = await search('finds', 'in which city does the user live')
	t.equal(status, 200)
	t.strictSame(Object.keys(body[0]).toSorted(), ['content', 'created_at', 'id', 'similarity'])
	t.match(body[0], { id: berlin, content: 'The user lives in Berlin.', created_at: ISO })
	for (const { similarity } of body) t.ok(similarity >= 0 && similarity <= 1, `similarity ${similarity}`)
	t.match((await search('finds', 'Which dogs are there?')).body[0], { id: rex })

	const same = (await search('finds', 'Alice has a dog called Rex.')).body[0]
	t.ok(same.similarity > 0.99, `of identical text: ${same.similarity}`)
})

void t.test('a misspelt word is found, and an unrelated word is not', async (t) => {
	const [id] = await make('misspelt', ['Backups of the database run every night.'])
	t.match((await search('misspelt', 'databsae')).body[0], { id })
	t.strictSame((await search('misspelt', 'xylophone')).body, [])
})

void t.test('a word typed without its special letters is found, and a Korean word of one character', async (t) => {
	const contents = {
		kizim: 'Kızım Elif bu yıl okula başlıyor.',
		lodz: 'Nasz magazyn jest w mieście Łódź.',
		soren: 'Søren takes care of the servers.',
		집: '우리 집은 강가에 있다.',
		strasse: 'The office is in Lange Straße.',
	}
	const ids = await make('letters', Object.values(contents))
	for (const [n, question] of Object.keys(contents).entries())
		t.equal((await search('letters', question)).body[0]?.id, ids[n], question)
})

void t.test('limit is 10 by default and 1 to 100', async (t) => {
	await make(
		'many',
		Array.from({ length: 12 }, (_, n) => `Note ${n} tells of the garden.`),
	)
	t.equal((await search('many', 'garden')).body.length, 10)
	t.equal((await search('many', 'garden', '&limit=3')).body.length, 3)
	t.equal((await search('many', 'garden', '&limit=100')).body.length, 12)
	for (const limit of ['0', '101', '-1', '1.5', 'x', '']) {
		assertError(t, await search('many', 'garden', `&limit=${limit}`), {
			status: 400,
			code: 'invalid_request',
			path: 'limit',
		})
	}
})

void t.test('an invalid search is refused', async (t) => {
	await make('strict')
	const bad = { status: 400, code: 'invalid_request', path: 'q' }
	assertError(t, await gateway.request('GET', '/v1/agents/strict/memory/search'), bad, 'no q')
	assertError(t, await search('strict', ''), bad, 'an empty q')
	assertError(t, await search('strict', 'x'.repeat(4_001)), bad, 'a long q')
	assertError(t, await search('strict', 'a', '&q=b'), bad, 'two of them')
	assertError(t, await search('strict', 'a', '&colour=red'), { ...bad, path: 'colour' }, 'an unknown parameter')
	t.strictSame((await search('strict', 'x'.repeat(4_000))).body, [])
	for (const q of ['?', '  ', '"', 'AND OR NOT', '*', '\u0000', '😀', "';--", '%', '`${x}`', '中']) {
		t.equal((await search('strict', q)).status, 200, JSON.stringify(q))
	}
})

void t.test('an operator stores, lists and deletes memories, page by page', async (t) => {
	await make('owner')
	const first = await store('owner', { content: 'The office is in Mill House.', tags: ['office', 'place'] })
	t.equal(first.status, 201)
	t.match(first.body, { content: 'The office is in Mill House.', tags: ['office', 'place'], created_at: ISO })
	t.match(first.body.id, UUID)
	const ids = [first.body.id]
	for (const n of [2, 3, 4, 5]) ids.unshift((await store('owner', { content: `Fact number ${n}.` })).body.id)

	const read = async (query: string): Promise<Answer> =>
		(await gateway.request('GET', `/v1/agents/owner/memory${query}`)).body
	t.strictSame(
		(await read('')).memories.map(({ id }: { id: string }) => id),
		ids,
		'newest first',
	)
	const seen: string[] = []
	for (let query = '?limit=2'; ;) {
		const { memories, next_cursor } = await read(query)
		seen.push(...memories.map(({ id }: { id: string }) => id))
		if (next_cursor === null) break
		query = `?limit=2&cursor=${next_cursor}`
	}
	t.strictSame(seen, ids, 'page by page')
	t.strictSame((await read('')).memories.at(-1), first.body)

	const path = `/v1/agents/owner/memory/${first.body.id}`
	t.equal((await gateway.request('DELETE', path)).status, 204)
	assertError(t, await gateway.request('DELETE', path), { status: 404, code: 'not_found', message: /has no memory/ })
	t.equal((await read('')).memories.length, 4)
	t.notOk((await search('owner', 'Mill House')).body.some(({ id }: { id: string }) => id === first.body.id))
})

void t.test('content of up to 32,000 characters is stored unchanged, and other content is refused', async (t) => {
	await make('picky')
	const bad = { status: 400, code: 'invalid_request' }
	for (const content of ['', '   ', '\n', 'x'.repeat(32_001), 7, null, ['a'], { a: 1 }]) {
		assertError(t, await store('picky', { content }), { ...bad, path: 'content' }, JSON.stringify(content).slice(0, 40))
	}
	assertError(t, await store('picky', {}), { ...bad, path: 'content' })
	assertError(t, await store('picky', { content: 'a', colour: 'red' }), { ...bad, path: 'colour' })
	assertError(t, await store('picky', { content: 'a', tags: 'x' }), { ...bad, path: 'tags' })
	assertError(t, await store('picky', { content: 'a', tags: [''] }), { ...bad, path: 'tags.0' })
	assertError(t, await store('picky', { content: 'a', tags: ['x', 'x'] }), { ...bad, path: 'tags.1' })
	assertError(t, await store('picky', { content: 'a', tags: Array.from({ length: 17 }, (_, n) => `t${n}`) }), {
		...bad,
		path: 'tags',
	})
	t.strictSame((await gateway.request('GET', '/v1/agents/picky/memory')).body.memories, [], 'nothing was stored')

	const longest = `${'word '.repeat(6_399)}zebra`
	t.equal(longest.length, 32_000)
	t.equal((await store('picky', { content: longest })).body.content, longest)
	t.equal((await search('picky', 'zebra')).body[0].content, longest)
	for (const content of [
		'\u0000\u001f',
		'\u2028 naïve 😀 \u202e',
		'"\\/\b\f',
		'{{secret:A}} ${x}',
		'__proto__ constructor',
	]) {
		const { body } = await store('picky', { content })
		t.equal(body.content, content)
	}
})

void t.test('any content is stored or properly refused, and can be searched for', async (t) => {
	await make('fuzzed')
	await fc.assert(
		fc.asyncProperty(
			fc.oneof(arbitraryText({ maxLength: 300 }), fc.string({ unit: 'grapheme', maxLength: 100 })),
			async (content) => {
				const reply = await store('fuzzed', { content })
				if (reply.status !== 201) return isProperResponse(reply)
				const found = await search('fuzzed', content.slice(0, 300) || 'x')
				return isProperResponse(found) && reply.body.content === content.toWellFormed()
			},
		),
		{ numRuns: 25 },
	)
	t.pass('25 contents')
})

void t.test('a run stores, recalls and forgets memories, and emits events', async (t) => {
	const agent = await follow(t, gateway, 'mindful')
	const stored = await callTool(agent, 'memory.store', {
		content: 'Priya signs all large invoices.',
		tags: ['finance'],
	})
	t.match(stored, { id: UUID, created_at: ISO })
	t.match((await agent.stream.waitFor('memory.stored')).payload, { memory_id: stored.id, tags: ['finance'] })

	const recalled = await callTool(agent, 'memory.recall', { query: 'who has to sign an invoice?', limit: 5 })
	t.match(recalled.memories[0], { id: stored.id, content: 'Priya signs all large invoices.', tags: ['finance'] })
	t.match((await agent.stream.waitFor('memory.recalled')).payload, { count: 1, memory_ids: [stored.id] })

	await callTool(agent, 'memory.store', { content: 'Invoices are archived for ten years.', tags: ['finance', 'law'] })
	const byTag = await callTool(agent, 'memory.recall', { query: 'invoices', tags: ['law', 'finance'] })
	t.strictSame(
		byTag.memories.map(({ content }: { content: string }) => content),
		['Invoices are archived for ten years.'],
	)
	t.strictSame((await callTool(agent, 'memory.recall', { query: 'invoices', tags: ['other'] })).memories, [])

	t.match(await callTool(agent, 'memory.forget', { id: stored.id }), { id: stored.id, forgotten: true })
	t.match((await agent.stream.waitFor('memory.forgotten')).payload, { memory_id: stored.id })
	t.match(await callTool(agent, 'memory.forget', { id: stored.id }), { code: 'not_found', message: /memory\.recall/ })
	t.notOk(JSON.stringify((await search('mindful', 'Priya')).body).includes('Priya'))
})

void t.test('invalid arguments are reported to the model', async (t) => {
	const agent = await follow(t, gateway, 'careless')
	for (const [tool, args] of [
		['memory.store', {}],
		['memory.store', { content: '' }],
		['memory.store', { content: 'a', more: 1 }],
		['memory.recall', { query: '' }],
		['memory.recall', { query: 'a', limit: 0 }],
		['memory.recall', { query: 'a', limit: '5' }],
		['memory.forget', { id: 7 }],
	] as const) {
		const failed = await callTool(agent, tool, args)
		t.match(failed, { code: 'invalid_arguments' }, `${tool} ${JSON.stringify(args)}`)
	}
})

void t.test('the offline provider answers from memory, also in another session', async (t) => {
	const agent = await follow(t, gateway, 'elephant')
	await agent.complete('/tool memory.store {"content": "The gate code is 4711."}')
	await agent.call('reset', {})
	const run_id = await agent.complete('What is the gate code?')
	t.match((await agent.read(run_id)).answer, /The gate code is 4711\./)
	const other = await follow(t, gateway, 'goldfish')
	const echo = await other.complete('What is the gate code?')
	t.notMatch((await other.read(echo)).answer, /4711/, 'another agent does not find it')
})

void t.test('an agent finds only its own memories, and a new agent with its name finds none', async (t) => {
	await make('one', ['The secret garden opens at noon.'])
	await make('two', ['The public garden opens at dawn.'])
	t.notMatch(JSON.stringify((await search('two', 'garden opens')).body), /secret/)
	const [id] = (await search('one', 'garden')).body.map((found: { id: string }) => found.id)
	assertError(t, await gateway.request('DELETE', `/v1/agents/two/memory/${id}`), { status: 404, code: 'not_found' })

	t.equal((await gateway.request('DELETE', '/v1/agents/one')).status, 204)
	for (const path of ['memory', 'memory/search?q=garden', 'memory/compactions']) {
		assertError(t, await gateway.request('GET', `/v1/agents/one/${path}`), { status: 404, code: 'not_found' }, path)
	}
	await make('one')
	t.strictSame((await search('one', 'garden')).body, [])
	t.strictSame((await gateway.request('GET', '/v1/agents/one/memory')).body.memories, [])
})

void t.test('each operation requires its scope', async (t) => {
	const [id] = await make('guarded', ['Something.'])
	const { token: read } = await addToken(gateway, ['agents:read'])
	const { token: write } = await addToken(gateway, ['agents:write'])
	for (const [method, path, scope, body] of [
		['GET', 'memory', 'agents:read'],
		['GET', 'memory/search?q=a', 'agents:read'],
		['GET', 'memory/compactions', 'agents:read'],
		['POST', 'memory', 'agents:write', { content: 'Else.' }],
		['POST', 'memory/compact', 'agents:write', {}],
		['DELETE', `memory/${id}`, 'agents:write'],
	] as const) {
		const [right, wrong] = scope === 'agents:read' ? [read, write] : [write, read]
		const call = (token: string): Promise<Reply<Answer>> =>
			gateway.request(method, `/v1/agents/guarded/${path}`, { token, ...(body && { body }) })
		assertError(
			t,
			await call(wrong),
			{ status: 403, code: 'forbidden', message: new RegExp(scope) },
			`${method} ${path}`,
		)
		t.ok((await call(right)).status < 300, `${method} ${path} with ${scope}`)
	}
})

void t.test('concurrent requests do not exceed memory.max_per_agent', async (t) => {
	const small = await startGateway({ config: 'memory:\n  max_per_agent: 3\n' })
	t.teardown(() => small.stop())
	await small.request('POST', '/v1/agents', { body: { name: 'full' } })
	const stored = await Promise.all(
		Array.from({ length: 10 }, (_, n) =>
			small.request('POST', '/v1/agents/full/memory', { body: { content: `Fact ${n}.` } }),
		),
	)
	t.equal(stored.filter(({ status }) => status === 201).length, 3)
	const over = stored.find(({ status }) => status !== 201) as Reply<Answer>
	assertError(t, over, { status: 409, code: 'conflict', message: /memory\.max_per_agent is 3/ })
	const id = stored.find(({ status }) => status === 201)?.body.id
	t.equal((await small.request('DELETE', `/v1/agents/full/memory/${id}`)).status, 204)
	const room = await small.request('POST', '/v1/agents/full/memory', { body: { content: 'There is room again.' } })
	t.equal(room.status, 201)
})

void t.test('a compaction reports its start and its result', async (t) => {
	const agent = await follow(t, gateway, 'tidy')
	for (const content of ['Rex is a dog.', 'The bill is paid.', 'rex is the dog', 'A third thing.']) {
		await store('tidy', { content })
	}
	const { status, body } = await agent.call('memory/compact', {})
	t.equal(status, 200)
	t.match(body, { agent_id: 'tidy', status: 'compaction_started', memories_before: 4, compaction_id: UUID })
	const { compaction_id } = body
	t.match((await agent.stream.waitFor('memory.compaction_started')).payload, { compaction_id, memories_before: 4 })
	t.match((await agent.stream.waitFor('memory.compacted')).payload, {
		compaction_id,
		status: 'completed',
		memories_before: 4,
		memories_after: 3,
		merged: 1,
	})
	const [compaction] = (await agent.call('memory/compactions')).body
	t.match(compaction, { compaction_id, status: 'completed', started_at: ISO, ended_at: ISO, error: null })
	assertError(t, await gateway.request('POST', '/v1/agents/nobody/memory/compact'), { status: 404, code: 'not_found' })
})
