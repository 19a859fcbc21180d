/** Embeddings by a server: a real one on the other side of HTTP, which may fail. */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import type { ModelServer } from '../../support/model-server.ts'

interface World {
	model: ModelServer
	home: string
	/** What the server does with the next requests. */
	mood: { now: 'well' | 'fails' | 'lies' | 'huge' | 'reads little' }
	start(): Promise<TestGateway>
	/** Texts that the server was asked to embed so far. */
	asked(): string[]
}

/** Its vectors know one thing: that a physician is a doctor. */
async function world(t: Test): Promise<World> {
	const model = await startModelServer()
	const mood: World['mood'] = { now: 'well' }
	model.mock.onEmbedding(/^/, ({ embeddingInput = '', model: name }) => {
		if (mood.now === 'fails') return { error: { message: 'out of order', type: 'scripted' }, status: 500 }
		if (mood.now === 'lies') return { embedding: [] }
		if (mood.now === 'huge') return { embedding: [1e300, 0, 0, 0] }
		if (/refused/.test(embeddingInput))
			return { error: { message: 'a text is too long', type: 'scripted' }, status: 400 }
		if (mood.now === 'reads little' && embeddingInput.length > 2_000)
			return { error: { message: 'input (1203 tokens) is too large to process', type: 'server_error' }, status: 500 }
		const isMedical = /physician|doctor/i.test(embeddingInput)
		const embedding = isMedical ? [1, 0.1, 0, 0] : [0, 0.1, 1, 0]
		return { embedding: name === 'larger' ? [...embedding, 0, 0] : embedding }
	})
	const provider = (embedding: string): string =>
		`    kind: openai\n    base_url: ${model.url}\n    model: chat\n    embedding_model: ${embedding}\n`
	const home = makeHome({
		config: `providers:\n  one:\n${provider('small')}  two:\n${provider('larger')}default_provider: one\n`,
	})
	t.teardown(async () => {
		await model.stop()
		rmSync(home, { recursive: true, force: true })
	})
	return {
		model,
		home,
		mood,
		start: async () => {
			const gateway = await startGateway({ home })
			t.teardown(() => gateway.stop())
			return gateway
		},
		asked: () =>
			model.mock.getRequests().flatMap(({ body }) => (body as { embeddingInput?: string }).embeddingInput ?? []),
	}
}

const PHYSICIAN = 'The physician of the family is Mrs Okafor.'
const PLUMBER = 'The plumber came on Friday.'

async function fillAgent(gateway: TestGateway): Promise<void> {
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	for (const content of [PLUMBER, PHYSICIAN]) {
		const { status } = await gateway.request('POST', '/v1/agents/ada/memory', { body: { content } })
		if (status !== 201) throw new Error(`a memory was answered with ${status}`)
	}
}

async function search(gateway: TestGateway, q: string): Promise<Answer> {
	return (await gateway.request('GET', `/v1/agents/ada/memory/search?q=${encodeURIComponent(q)}`)).body
}

/**
 * Searches again until what has no word of the question in common is found by its meaning. The server has one vector for
 * all texts of a request, so what was embedded together is found together.
 */
async function foundByMeaning(gateway: TestGateway): Promise<Answer> {
	for (;;) {
		const found = (await search(gateway, 'doctor')).find((one: Answer) => one.content === PHYSICIAN)
		if (found) return found
		await sleep(50)
	}
}

void t.test('a memory is found by its meaning as soon as it is stored', async (t) => {
	const { start, asked } = await world(t)
	const gateway = await start()
	await fillAgent(gateway)
	const [first, second] = await search(gateway, 'doctor')
	t.match(first, { content: PHYSICIAN, similarity: 1 })
	t.ok(second === undefined || second.similarity < 0.1)
	await search(gateway, 'doctor')
	t.equal(asked().filter((text) => text === 'doctor').length, 1, 'a question that comes again is not paid again')
})

void t.test('embeddings are kept: after a restart no memory is sent again', async (t) => {
	const { start, asked } = await world(t)
	const first = await start()
	await fillAgent(first)
	await first.stop()
	const before = asked().length
	const second = await start()
	t.match((await search(second, 'doctor'))[0], { content: PHYSICIAN, similarity: 1 })
	t.strictSame(asked().slice(before), ['doctor'])
})

void t.test('where the server fails, memories are kept and found by words; embeddings are made up later', async (t) => {
	const { start, mood } = await world(t)
	const gateway = await start()
	mood.now = 'fails'
	await fillAgent(gateway)
	t.match((await search(gateway, 'plumber'))[0], { content: PLUMBER })
	t.strictSame(await search(gateway, 'doctor'), [])
	mood.now = 'well'
	t.match(await foundByMeaning(gateway), { content: PHYSICIAN, similarity: 1 })
})

void t.test('so they are when the gateway was stopped before', async (t) => {
	const { start, mood } = await world(t)
	mood.now = 'fails'
	const first = await start()
	await fillAgent(first)
	await first.stop()
	mood.now = 'well'
	const second = await start()
	t.match(await foundByMeaning(second), { content: PHYSICIAN, similarity: 1 })
})

void t.test('what is no vector is taken for none', async (t) => {
	for (const now of ['lies', 'huge'] as const) {
		const { start, mood } = await world(t)
		mood.now = now
		const gateway = await start()
		await fillAgent(gateway)
		const [found] = await search(gateway, 'plumber')
		t.match(found, { content: PLUMBER }, now)
		t.ok(found.similarity > 0 && found.similarity <= 1, `${now}: by the built-in embedder`)
	}
})

void t.test('a text that the server refuses keeps no other from being embedded', async (t) => {
	const { start, mood } = await world(t)
	const first = await start()
	mood.now = 'fails'
	await first.request('POST', '/v1/agents', { body: { name: 'ada' } })
	await first.request('POST', '/v1/agents/ada/memory', { body: { content: PHYSICIAN } })
	await first.request('POST', '/v1/agents/ada/memory', { body: { content: 'This one is refused.' } })
	await first.stop()
	mood.now = 'well'
	const second = await start()
	t.match(await foundByMeaning(second), { content: PHYSICIAN, similarity: 1 })
})

void t.test('a text that is too long for the embedding model is found by its beginning', async (t) => {
	const { start, asked, mood } = await world(t)
	mood.now = 'reads little'
	const gateway = await start()
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const content = `${PHYSICIAN} ${'She lives by the harbour. '.repeat(300)}`
	await gateway.request('POST', '/v1/agents/ada/memory', { body: { content } })
	await gateway.request('POST', '/v1/agents/ada/memory', { body: { content: PLUMBER } })
	t.match((await search(gateway, 'doctor'))[0], { content, similarity: 1 })
	t.match((await search(gateway, `doctor, ${'what else? '.repeat(300)}`))[0], { content, similarity: 1 })
	t.ok(asked().every((text) => content.startsWith(text) || text.startsWith('doctor') || text === PLUMBER))
})

void t.test('a long text is not cut within a character', async (t) => {
	const { start, asked } = await world(t)
	const gateway = await start()
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	await gateway.request('POST', '/v1/agents/ada/memory', { body: { content: `x${'😀'.repeat(4_000)}` } })
	t.strictSame(
		asked().map((text) => text.isWellFormed()),
		[true],
	)
})

void t.test('an answer that lacks one of the vectors is refused', async (t) => {
	const server = createServer((_, response) => {
		const data = [0, 2, 2].map((index) => ({ object: 'embedding', index, embedding: [1, 0] }))
		response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data }))
	}).listen(0, '127.0.0.1')
	await once(server, 'listening')
	t.teardown(() => server.close())
	const { port } = server.address() as AddressInfo
	const gateway = await startGateway({
		config: `plugins: {openai-api: true}\nproviders:\n  one:\n    kind: openai\n    base_url: http://127.0.0.1:${port}/v1\n    model: chat\n    embedding_model: small\ndefault_provider: one\n`,
	})
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const body = { model: 'ada', input: ['one', 'two', 'three'] }
	const answer = await gateway.request('POST', '/v1/embeddings', { body })
	t.match(answer, { status: 502, body: { error: { code: 'embedding_failed' } } })
})

void t.test('another embedder makes all of them anew, while words are found', async (t) => {
	const { start } = await world(t)
	const gateway = await start()
	await fillAgent(gateway)
	t.match((await search(gateway, 'doctor'))[0], { content: PHYSICIAN })
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { provider: 'two' } } })
	t.match((await search(gateway, 'plumber'))[0], { content: PLUMBER })
	t.match(await foundByMeaning(gateway), { content: PHYSICIAN })
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { provider: 'nobody' } } })
	t.match((await search(gateway, 'plumber'))[0], { content: PLUMBER }, 'a provider that is not there does no harm')
})

void t.test('a forgotten memory leaves no embedding behind', async (t) => {
	const { start } = await world(t)
	const gateway = await start()
	await fillAgent(gateway)
	const [{ id }] = await search(gateway, 'doctor')
	t.equal((await gateway.request('DELETE', `/v1/agents/ada/memory/${id}`)).status, 204)
	t.notOk((await search(gateway, 'doctor')).some((one: Answer) => one.content === PHYSICIAN))
})
