import t from 'tap'
import { exampleFile, switchedOn as withEverythingOn } from '../../docs/make/example.ts'
import { composition, readConfig } from '../../core/host/config.ts'

const example = exampleFile(composition)
const switchedOn = withEverythingOn(example)

void t.test('the unchanged example has the defaults', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': example } })
	const empty = t.testdir({})
	const { store, ...rest } = readConfig({ home, env: {} })
	const { store: emptyStore, ...defaults } = readConfig({ home: empty, env: {} })
	t.same(rest, defaults)
	t.equal(store.min_free_mib, emptyStore.min_free_mib)
	t.end()
})

void t.test('the example names its schema in the first line', (t) => {
	t.equal(example.split('\n')[0], '# yaml-language-server: $schema=./gateway.schema.json')
	t.end()
})

void t.test('with every setting uncommented, the example has the defaults', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': switchedOn } })
	const { providers, default_provider, fallback, transcription, plugins, workers, auth, ...rest } = readConfig({
		home,
		env: { OPENAI_API_KEY: 'k' },
	})
	const { workers: defaultWorkers, ...defaults } = readConfig({ home: t.testdir({}), env: {} })
	t.match(defaults, rest)
	t.equal(workers.runs_per_thread, defaultWorkers.runs_per_thread)
	t.same(Object.keys(providers), ['openai', 'anthropic', 'google', 'ollama', 'offline'])
	t.match(providers.openai, { base_url: 'https://api.openai.com/v1', api_key: 'k', timeout_s: 120 })
	t.equal(default_provider, 'openai')
	t.match(auth.oidc, { issuer: 'https://login.example.com', rules: [{ scopes: ['*'] }, { agents: ['team-*'] }] })
	t.same(fallback, ['ollama'])
	t.same(transcription, { provider: 'openai', model: 'whisper-1' })
	t.same(plugins, { 'openai-api': {}, 'mcp-server': {}, 'my-plugin': { enabled: false, path: './my-plugin' } })
	t.end()
})

void t.test('the example shows every setting', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': switchedOn } })
	const config = readConfig({ home, env: { OPENAI_API_KEY: 'k' } })
	const names = (value: unknown): string[] =>
		typeof value === 'object' && value !== null && !Array.isArray(value)
			? Object.entries(value).flatMap(([name, inner]) => [name, ...names(inner)])
			: []
	for (const name of names(config)) t.match(switchedOn, new RegExp(`^ *${name}:`, 'm'), name)
	t.end()
})
