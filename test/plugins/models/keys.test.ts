/** Provider keys in the vault: what the model server gets, and what happens without a key. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { modelsOf } from '../../../plugins/models/models.ts'
import type { ModelSettings } from '../../../plugins/models/contract.ts'
import { openLog } from '../../../core/log/log.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { startScriptedModels } from '../../support/scripted-model.ts'
import { openStream } from '../../support/sse.ts'

const KEY = 'sk-vault-0123456789abcdef'
const models = await startScriptedModels()
t.teardown(() => models.stop())
const { url: base_url, requests } = models.add(({ body }) => {
	const content = JSON.stringify(body.messages.at(-1)).includes('What is it?') ? `It is ${KEY}-2.` : 'Hello.'
	return { sse: [{ choices: [{ index: 0, delta: { content }, finish_reason: 'stop' }] }] }
})
const lastKey = (): string | undefined => requests.at(-1)?.headers.authorization

const provider = (key: string): string => `{ kind: openai, base_url: "${base_url}", model: m, api_key: ${key} }`

void t.test('a provider uses the newest version of its key in the vault', async (t) => {
	const gateway = await startGateway({ config: `providers: { main: ${provider('{ secret: MODEL_KEY }')} }\n` })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')

	const missing = await ada.start('Are you there?')
	t.match((await ada.ended(missing)).payload, {
		code: 'provider_unknown',
		error:
			/the vault has no secret with the name in providers\.main\.api_key; store it with svc vault set or POST \/v1\/vault\/secrets/,
	})
	const stored = await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'MODEL_KEY', value: KEY } })
	await ada.complete('Are you there?')
	t.equal(lastKey(), `Bearer ${KEY}`)

	const path = `/v1/vault/secrets/${stored.body.id}`
	await gateway.request('PUT', path, { body: { value: `${KEY}-2` } })
	const run_id = await ada.complete('What is it?')
	t.equal(lastKey(), `Bearer ${KEY}-2`)
	t.equal((await ada.waitFor(run_id, 'message.assistant')).payload.content, 'It is [redacted:provider:main].')
	await ada.complete('What was it?')
	t.notMatch(
		JSON.stringify(requests.map(({ body }) => body)),
		KEY,
		'the key in an answer of the provider is not stored',
	)

	await gateway.request('PUT', path, { body: { value: `${KEY}\n` } })
	t.match((await ada.ended(await ada.start('And now?'))).payload, {
		code: 'provider_unknown',
		error: /providers\.main\.api_key cannot be a key: .*without spaces or line breaks; .*PUT/,
	})
	await gateway.request('DELETE', path)
	t.match((await ada.ended(await ada.start('And now?'))).payload, { code: 'provider_unknown', error: /no secret/ })
	t.notMatch(JSON.stringify(ada.stream.events), KEY)
})

void t.test('a key that was entered as the name of a secret is not repeated', async (t) => {
	const gateway = await startGateway({ config: `providers: { main: ${provider(`{ secret: ${KEY} }`)} }\n` })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const { payload } = await ada.ended(await ada.start('Hello.'))
	t.match(payload, { code: 'provider_unknown' })
	t.notMatch(JSON.stringify(ada.stream.events), KEY)
})

void t.test('a locked vault fails only the runs that need it', async (t) => {
	const gateway = await startGateway({
		config: `default_provider: main\nproviders: { main: ${provider('{ secret: MODEL_KEY }')}, plain: ${provider('sk-plain')} }\n`,
		env: { SVC_VAULT_KEY: 'no key' },
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	t.match((await ada.ended(await ada.start('Hello.'))).payload, {
		code: 'vault_locked',
		error: /the vault is locked: SVC_VAULT_KEY is not a key/,
	})
	const bob = await follow(t, gateway, 'bob', { config: { provider: 'plain', fallback: ['main'] } })
	await bob.complete('Hello.')
	t.equal(lastKey(), 'Bearer sk-plain', 'a fallback without its key is skipped')
})

void t.test('without the vault plugin the error names it', async (t) => {
	const config = `plugins: { vault: false, webhooks: false, channels: false, telegram: false, discord: false }\nproviders: { main: ${provider('{ secret: MODEL_KEY }')} }\n`
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	t.match((await ada.ended(await ada.start('Hello.'))).payload, {
		code: 'provider_unknown',
		error: /providers\.main\.api_key is a secret of the vault, which is not running; set plugins\.vault to true/,
	})
	const stream = await openStream(gateway.url, { query: { event_type: 'config.*' } })
	t.teardown(() => stream.close())
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), config.replace('false', 'true'))
	await stream.waitFor('config.reloaded')
	await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'MODEL_KEY', value: KEY } })
	await ada.complete('Hello.')
	t.equal(lastKey(), `Bearer ${KEY}`)
})

void t.test('embeddings come from the provider of the agent, if it has an embedding model', async (t) => {
	const settings = (providers: ModelSettings['providers']): Parameters<typeof modelsOf>[0] => ({
		config: { providers, default_provider: Object.keys(providers)[0] as string, fallback: [], transcription: null },
		find: (() => ({ open: async (ref: string) => `value-of-${ref}` })) as never,
		log: openLog({ level: 'silent', format: 'json' }),
		redactor: openRedactor(),
	})
	const openai = { kind: 'openai', base_url: 'https://example.com/v1', model: 'm' } as const
	const models = modelsOf(
		settings({
			main: { ...openai, embedding_model: 'e', api_key: { secret: 'KEY' }, timeout_s: 7 },
			keyless: { ...openai, embedding_model: 'f' },
			none: openai,
			itself: { ...openai, base_url: 'https://api.openai.com/v1/' },
			offline: { kind: 'offline' },
		}),
	)
	t.strictSame(await models.embedder({}), {
		provider: 'main',
		base_url: 'https://example.com/v1',
		model: 'e',
		timeout_ms: 7_000,
		api_key: 'value-of-KEY',
	})
	t.strictSame(await models.embedder({ provider: 'keyless' }), {
		provider: 'keyless',
		base_url: 'https://example.com/v1',
		model: 'f',
		timeout_ms: 120_000,
	})
	t.equal(await models.embedder({ provider: 'none' }), undefined)
	t.match(await models.embedder({ provider: 'itself' }), { model: 'text-embedding-3-small' })
	t.equal(await models.embedder({ provider: 'offline' }), undefined)
	await t.rejects(models.embedder({ provider: 'nowhere' }), { code: 'provider_unknown' })
	const bare = modelsOf(settings({ offline: { kind: 'offline' } }))
	t.equal(await bare.embedder({ provider: 'nowhere' }), undefined, 'the offline provider answers instead')
})
