/** The sentence encoder in the home: memories are found by meaning without a server. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { encoderIn } from '../../../plugins/memory/local/encoder.ts'
import { manifests } from '../../../plugins/memory/local/packages.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import lock from '../../../package-lock.json' with { type: 'json' }
import { eventually } from '../../support/wait.ts'

const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url))

void t.test('without the encoder, the gateway shows how to install it, and uses it once it is there', async (t) => {
	const home = makeHome({ config: 'memory:\n  embedder: local\n' }, t)
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const state = async (): Promise<string | null> => {
		const { body } = await gateway.request('GET', '/v1/plugins')
		return body.find(({ name }: { name: string }) => name === 'memory').last_error
	}
	t.match(await state(), /svc memory encoder/)
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	for (const content of ['The physician of the family is Mrs Okafor.', 'The plumber came on Friday.'])
		await gateway.request('POST', '/v1/agents/ada/memory', { body: { content } })
	const search = () => gateway.request('GET', '/v1/agents/ada/memory/search?q=who+is+our+doctor')
	t.strictSame((await search()).body, [], 'nothing is found by words')

	mkdirSync(join(home, 'encoder'))
	symlinkSync(modules, join(home, 'encoder/node_modules'))
	// The first search starts the embedding of the memories in the background.
	const found = await eventually(async () => {
		const { body } = await search()
		return body.length === 2 ? body : undefined
	})
	t.match(found[0], { content: /physician/ })
	t.equal(await state(), null)
})

void t.test('any text gets a vector, and failures are reported', async (t) => {
	await using encoder = encoderIn(join(modules, '..'))
	const { signal } = new AbortController()
	const texts = ['', 'ä', '猫', '\ud800', 'word '.repeat(5_000), 'A cat.', 'A cat.']
	const vectors = await encoder.embed(texts, signal)
	t.equal(vectors.length, texts.length)
	for (const vector of vectors) t.ok(vector.length === 512 && vector.every(Number.isFinite))
	t.strictSame(vectors.at(-1), vectors.at(-2))
	await using absent = encoderIn('/nonexistent')
	await t.rejects(absent.embed(['A cat.'], signal), { code: 'embedding_failed' })
	await t.rejects(encoder.embed(['A cat.'], AbortSignal.abort()), { code: 'embedding_failed' })
})

void t.test('svc installs the versions that the tests use', async (t) => {
	const { packages } = JSON.parse(manifests().lock) as { packages: Record<string, { integrity?: string }> }
	const known = lock.packages as Record<string, { integrity?: string }>
	for (const name of Object.keys(packages))
		if (name.includes('@energetic-ai')) t.equal(packages[name]?.integrity, known[name]?.integrity, name)
})
