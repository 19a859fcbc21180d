/** Embeddings from a real server over HTTP, which may fail. */
import { createServer } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { gatewayFor, makeHome, startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { startModelServer } from '../../support/model-server.ts'
import type { ModelServer } from '../../support/model-server.ts'
import { eventually } from '../../support/wait.ts'

interface Setup {
	model: ModelServer
	home: string
	/** How the server answers from now on. */
	server: { mode: 'ok' | 'error' | 'empty vector' | 'huge vector' | 'short input' }
	start(): Promise<TestGateway>
	/** The texts of all requests so far. */
	requested(): string[]
}

/** The server's vectors express one thing: that a physician is a doctor. */
async function setUp(t: Test): Promise<Setup> {
	const model = await startModelServer()
	const server: Setup['server'] = { mode: 'ok' }
	model.mock.onEmbedding(/^/, ({ embeddingInput = '', model: name }) => {
		if (server.mode === 'error') return { error: { message: 'out of order', type: 'scripted' }, status: 500 }
		if (server.mode === 'empty vector') return { embedding: [] }
		if (server.mode === 'huge vector') return { embedding: [1e300, 0, 0, 0] }
		if (/refused/.test(embeddingInput))
			return { error: { message: 'a text is too long', type: 'scripted' }, status: 400 }
		if (server.mode === 'short input' && embeddingInput.length > 2_000)
			return { error: { message: 'input (1203 tokens) is too large to process', type: 'server_error' }, status: 500 }
		const isMedical = /physician|doctor/i.test(embeddingInput)
		const embedding = isMedical ? [1, 0.1, 0, 0] : [0, 0.1, 1, 0]
		return { embedding: name === 'larger' ? [...embedding, 0, 0] : embedding }
	})
	const provider = (embedding: string): string =>
		`    kind: openai\n    base_url: ${model.url}\n    model: chat\n    embedding_model: ${embedding}\n`
	const config = `providers:\n  one:\n${provider('small')}  two:\n${provider('larger')}default_provider: one\n`
	const home = makeHome({ config }, t)
	t.teardown(() => model.stop())
	return {
		model,
		home,
		server,
		start: () => gatewayFor(t, { home }),
		requested: () =>
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
 * Searches until the memory that shares no word with the question is found by its meaning. The server has one vector for all
 * texts of a request, so texts that were embedded together are found together.
 */
async function foundByMeaning(gateway: TestGateway): Promise<Answer> {
	return eventually(async () => (await search(gateway, 'doctor')).find(({ content }: Answer) => content === PHYSICIAN))
}

void t.test('a memory is found by its meaning as soon as it is stored', async (t) => {
	const { start, requested } = await setUp(t)
	const gateway = await start()
	await fillAgent(gateway)
	const [first, second] = await search(gateway, 'doctor')
	t.match(first, { content: PHYSICIAN, similarity: 1 })
	t.ok(second === undefined || second.similarity < 0.1)
	await search(gateway, 'doctor')
	t.equal(requested().filter((text) => text === 'doctor').length, 1, 'a repeated question is not embedded again')
})

void t.test('embeddings are stored: after a restart no memory is embedded again', async (t) => {
	const { start, requested } = await setUp(t)
	const first = await start()
	await fillAgent(first)
	await first.stop()
	const before = requested().length
	const second = await start()
	t.match((await search(second, 'doctor'))[0], { content: PHYSICIAN, similarity: 1 })
	t.strictSame(requested().slice(before), ['doctor'])
})

void t.test('if the server fails, memories are stored and found by words, and embedded later', async (t) => {
	const { start, server } = await setUp(t)
	const gateway = await start()
	server.mode = 'error'
	await fillAgent(gateway)
	t.match((await search(gateway, 'plumber'))[0], { content: PLUMBER })
	t.strictSame(await search(gateway, 'doctor'), [])
	server.mode = 'ok'
	t.match(await foundByMeaning(gateway), { content: PHYSICIAN, similarity: 1 })
})

void t.test('memories without embeddings are embedded after a restart', async (t) => {
	const { start, server } = await setUp(t)
	server.mode = 'error'
	const first = await start()
	await fillAgent(first)
	await first.stop()
	server.mode = 'ok'
	const second = await start()
	t.match(await foundByMeaning(second), { content: PHYSICIAN, similarity: 1 })
})

void t.test('an invalid vector is not used', async (t) => {
	for (const mode of ['empty vector', 'huge vector'] as const) {
		const { start, server } = await setUp(t)
		server.mode = mode
		const gateway = await start()
		await fillAgent(gateway)
		const [found] = await search(gateway, 'plumber')
		t.match(found, { content: PLUMBER }, mode)
		t.ok(found.similarity > 0 && found.similarity <= 1, `${mode}: by the built-in embedder`)
	}
})

void t.test('a text that the server refuses does not prevent others from being embedded', async (t) => {
	const { start, server } = await setUp(t)
	const first = await start()
	server.mode = 'error'
	await first.request('POST', '/v1/agents', { body: { name: 'ada' } })
	await first.request('POST', '/v1/agents/ada/memory', { body: { content: PHYSICIAN } })
	await first.request('POST', '/v1/agents/ada/memory', { body: { content: 'This one is refused.' } })
	await first.stop()
	server.mode = 'ok'
	const second = await start()
	t.match(await foundByMeaning(second), { content: PHYSICIAN, similarity: 1 })
})

void t.test('a text that is too long for the embedding model is found by its beginning', async (t) => {
	const { start, requested, server } = await setUp(t)
	server.mode = 'short input'
	const gateway = await start()
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const content = `${PHYSICIAN} ${'She lives by the harbour. '.repeat(300)}`
	await gateway.request('POST', '/v1/agents/ada/memory', { body: { content } })
	await gateway.request('POST', '/v1/agents/ada/memory', { body: { content: PLUMBER } })
	t.match((await search(gateway, 'doctor'))[0], { content, similarity: 1 })
	t.match((await search(gateway, `doctor, ${'what else? '.repeat(300)}`))[0], { content, similarity: 1 })
	t.ok(requested().every((text) => content.startsWith(text) || text.startsWith('doctor') || text === PLUMBER))
})

void t.test('a long text is not cut within a character', async (t) => {
	const { start, requested } = await setUp(t)
	const gateway = await start()
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	await gateway.request('POST', '/v1/agents/ada/memory', { body: { content: `x${'😀'.repeat(4_000)}` } })
	t.strictSame(
		requested().map((text) => text.isWellFormed()),
		[true],
	)
})

void t.test('a response without one of the vectors is rejected', async (t) => {
	const server = createServer((_, response) => {
		const data = [0, 2, 2].map((index) => ({ object: 'embedding', index, embedding: [1, 0] }))
		response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data }))
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const gateway = await startGateway({
		config: `plugins: {openai-api: true}\nproviders:\n  one:\n    kind: openai\n    base_url: ${url}/v1\n    model: chat\n    embedding_model: small\ndefault_provider: one\n`,
	})
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const body = { model: 'ada', input: ['one', 'two', 'three'] }
	const answer = await gateway.request('POST', '/v1/embeddings', { body })
	t.match(answer, { status: 502, body: { error: { code: 'embedding_failed' } } })
})

void t.test('a new embedder embeds all memories again; meanwhile they are found by words', async (t) => {
	const { start } = await setUp(t)
	const gateway = await start()
	await fillAgent(gateway)
	t.match((await search(gateway, 'doctor'))[0], { content: PHYSICIAN })
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { provider: 'two' } } })
	t.match((await search(gateway, 'plumber'))[0], { content: PLUMBER })
	t.match(await foundByMeaning(gateway), { content: PHYSICIAN })
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { provider: 'nobody' } } })
	t.match((await search(gateway, 'plumber'))[0], { content: PLUMBER }, 'an unknown provider does no harm')
})

void t.test('a forgotten memory leaves no embedding behind', async (t) => {
	const { start } = await setUp(t)
	const gateway = await start()
	await fillAgent(gateway)
	const [{ id }] = await search(gateway, 'doctor')
	t.equal((await gateway.request('DELETE', `/v1/agents/ada/memory/${id}`)).status, 204)
	t.notOk((await search(gateway, 'doctor')).some((one: Answer) => one.content === PHYSICIAN))
})
