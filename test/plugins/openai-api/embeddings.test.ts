/** Embeddings, by OpenAI's client. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { clientOf, refusal } from './client.ts'

const model = await startModelServer()
t.teardown(() => model.stop())
model.mock.onEmbedding(/^/, ({ embeddingInput = '' }) =>
	embeddingInput === 'breaks'
		? { error: { message: 'out of order', type: 'scripted' }, status: 500 }
		: { embedding: [embeddingInput.length, 0, 0] },
)
const gateway = await startGateway({
	config: `plugins: {openai-api: true}
default_provider: offline
providers:
  offline: {kind: offline}
  real: {kind: openai, base_url: '${model.url}', api_key: sk-test, model: m, embedding_model: e}
`,
})
t.teardown(() => gateway.stop())
for (const [name, provider] of [
	['ada', 'offline'],
	['bob', 'real'],
])
	await gateway.request('POST', '/v1/agents', { body: { name, config: { provider } } })
const openai = clientOf(gateway.url)

const cosine = (a: number[] = [], b: number[] = []): number =>
	a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)

void t.test('the built-in embedder puts similar wording close together, as floats and as base64', async (t) => {
	const input = ['The rents of the flats rise.', 'The rent of my flat rises.', 'Penguins swim.']
	const { data, response } = await openai.embeddings.create({ model: 'svc/ada', input }).withResponse()
	t.match(response.headers.get('x-svc-embedder'), /^[0-9a-f]{16}$/)
	t.match(data, { object: 'list', model: 'svc/ada', usage: { prompt_tokens: 17, total_tokens: 17 } })
	const [rents, rent, penguins] = data.data.map(({ embedding }) => embedding)
	t.equal(rents?.length, 256)
	t.ok(Math.abs(cosine(rents, rents) - 1) < 1e-5, 'of length 1')
	t.ok(cosine(rents, rent) > 0.5)
	t.ok(cosine(rents, penguins) < 0.3)
	const floats = await openai.embeddings.create({ model: 'ada', input: input[0] as string, encoding_format: 'float' })
	t.ok(cosine(floats.data[0]?.embedding, rents) > 0.9999, 'the client requests base64 by default')
	const many = Array.from({ length: 150 }, (_, at) => `text ${at}`)
	const list = await openai.embeddings.create({ model: 'ada', input: many })
	t.strictSame(
		list.data.map(({ index }) => index),
		many.map((_, at) => at),
	)
})

void t.test('the built-in embedder returns no zero vector, even for a text of function words only', async (t) => {
	const input = ['To be or not to be.', 'To be, or not to be?', 'What is it?', '?']
	const { data } = await openai.embeddings.create({ model: 'ada', input, encoding_format: 'float' })
	const [first, same, different, wordless] = data.map(({ embedding }) => embedding)
	t.ok(cosine(first, same) > 0.9999)
	t.ok(cosine(first, different) < 0.5)
	t.ok(Math.abs(cosine(wordless, wordless) - 1) < 1e-5, 'also for a text without words')
})

void t.test("an agent with an embedding model gets that model's vectors", async (t) => {
	const { data } = await openai.embeddings.create({ model: 'bob', input: 'five!', encoding_format: 'float' })
	t.strictSame(data, [{ object: 'embedding', index: 0, embedding: [1, 0, 0] }], 'of length 1')
	t.match(await refusal(openai.embeddings.create({ model: 'bob', input: 'breaks' })), {
		status: 502,
		code: 'embedding_failed',
		message: /out of order/,
	})
})

void t.test('invalid fields are refused by name', async (t) => {
	const create = (fields: object) => refusal(openai.embeddings.create({ model: 'ada', input: 'x', ...fields }))
	t.match(await create({ model: 'nobody' }), { status: 404, code: 'model_not_found', param: 'model' })
	t.match(await create({ input: '' }), { status: 400, param: 'input' })
	t.match(await create({ input: [] }), { status: 400, param: 'input' })
	t.match(await create({ input: ['x'.repeat(8_001)] }), { status: 400, param: 'input[0]' })
	for (const input of [[[1, 2]], [1, 2], [[1], [2]], 1])
		t.match(await create({ input }), { status: 400, param: /^input/, message: /lists of tokens/ })
	t.match(await create({ input: ['x'.repeat(8_001), ''] }), { status: 400, param: 'input', message: /8,000/ })
	t.match(await create({ dimensions: 64 }), { status: 400, param: 'dimensions' })
	t.match(await create({ encoding_format: 'int8' }), { status: 400, param: 'encoding_format' })
})
