import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { configFile, homeFolder } from '../../config/home.ts'
import { originOf, refuse } from '../../config/read.ts'
import { isFault } from '../../core/errors.ts'
import { readConfig } from '../../core/host/config.ts'
import type { Config } from '../../config/types.ts'

type Test = Pick<typeof t, 'testdir' | 'throws'>

function read(test: Test, yaml: string, env: Record<string, string> = {}): Config {
	return readConfig({ home: test.testdir({ config: { 'gateway.yaml': yaml } }), env })
}

void t.test('a missing file gives the defaults', (t) => {
	const home = t.testdir({})
	t.match(readConfig({ home, env: {} }), {
		server: { port: 3000 },
		legacy: { port: 17890 },
		store: { path: join(home, 'data'), url: null },
		workers: { threads: Math.min(4, Math.max(1, availableParallelism() - 1)) },
		runs: { limits: { steps: 50 } },
		backups: { folder: join(home, 'backups') },
		providers: { offline: { kind: 'offline' } },
		default_provider: 'offline',
		fallback: [],
		transcription: null,
		plugins: {},
	})
	t.end()
})

void t.test('a file of comments, and sections without settings, give the defaults', (t) => {
	const config = (yaml?: string) =>
		readConfig({ home: t.testdir(yaml === undefined ? {} : { config: { 'gateway.yaml': yaml } }), env: {} })
	const defaults = config()
	for (const yaml of [
		'# nothing\n',
		'---\n',
		'server:\n  allowed_hosts:\nruns:\n  limits:\nproviders:\nfallback:\nplugins:\n',
		'server: {}',
	])
		t.same(config(yaml), defaults, JSON.stringify(yaml))
	t.end()
})

void t.test('a byte order mark and Windows line endings are accepted', (t) => {
	t.equal(read(t, '\ufeffserver:\r\n  port: 8080\r\n').server.port, 8080)
	t.end()
})

void t.test('the configuration is deeply frozen', (t) => {
	const config = read(t, 'plugins: { clock: { zones: [{ name: UTC }] } }')
	t.throws(() => Object.assign(config.server, { port: 1 }), TypeError)
	t.throws(() => Object.assign(config.providers, { other: { kind: 'offline' } }), TypeError)
	const zones = (config.plugins.clock as { zones: object[] }).zones
	t.throws(() => zones.push({}), TypeError)
	t.throws(() => Object.assign(zones[0] ?? {}, { name: 'CET' }), TypeError)
	t.end()
})

void t.test('looking up an inherited name finds no provider or plugin', (t) => {
	const { providers, plugins } = read(t, '# nothing')
	t.equal(providers.constructor, undefined)
	t.equal(plugins.toString, undefined)
	t.end()
})

void t.test('host names are normalized to the form of a Host header', (t) => {
	const { server } = read(
		t,
		'server: { host: "[::1]", allowed_hosts: [Agents.Example.com, "[FD00::1]", my_host, 10.0.0.7] }',
	)
	t.equal(server.host, '::1')
	t.same(server.allowed_hosts, ['agents.example.com', 'fd00::1', 'my_host', '10.0.0.7'])
	t.end()
})

void t.test('store.path is absolute, relative to the home, or begins with ~', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': 'store: { path: sub/data }' } })
	t.equal(readConfig({ home, env: {} }).store.path, join(home, 'sub/data'))
	t.equal(read(t, 'store: { path: /var/lib/gateway }').store.path, '/var/lib/gateway')
	t.equal(read(t, 'store: { path: ~/agents }').store.path, join(homeFolder({}), '../agents'))
	t.end()
})

void t.test('plugins keep their settings as they are', (t) => {
	const plugins = { a: true, b: false, c: { enabled: false, path: './c', list: [1, 'x', { deep: 1.5 }] } }
	t.same(read(t, `plugins: ${JSON.stringify(plugins)}`).plugins, plugins)
	t.end()
})

void t.test('a provider gets its defaults by its kind', (t) => {
	const config = read(t, 'providers: { main: { kind: openai, model: m, base_url: "http://127.0.0.1:11434/v1/" } }')
	t.same(config.providers, {
		main: { kind: 'openai', base_url: 'http://127.0.0.1:11434/v1', model: 'm', timeout_s: 120 },
	})
	t.equal(config.default_provider, 'main', 'the only provider is the default')
	t.same(read(t, 'providers: { o: { kind: openai, model: m, api_key: "" } }').providers.o, {
		kind: 'openai',
		base_url: 'https://api.openai.com/v1',
		model: 'm',
		timeout_s: 120,
	})
	t.end()
})

void t.test('default_provider and fallback name providers of the file', (t) => {
	const config = read(
		t,
		'providers: { a: { kind: offline }, b: { kind: offline } }\ndefault_provider: b\nfallback: [a, b]',
	)
	t.equal(config.default_provider, 'b')
	t.same(config.fallback, ['a', 'b'])
	t.end()
})

void t.test('environment variables take precedence over the file', (t) => {
	const yaml = 'server: { host: 10.0.0.1, port: 1 }\nlegacy: { port: 2 }\nauth_mode: loopback\nlog: { level: warn }'
	const config = read(t, yaml, {
		SVC_HOST: '0.0.0.0',
		SVC_PORT: '0',
		SVC_LEGACY_PORT: '4000',
		SVC_LOOPBACK: '0',
		SVC_LOG_LEVEL: 'debug',
	})
	t.match(config, {
		server: { host: '0.0.0.0', port: 0 },
		legacy: { port: 4000 },
		auth_mode: 'token',
		log: { level: 'debug' },
	})
	t.end()
})

void t.test('an empty variable counts as unset', (t) => {
	const config = read(t, 'server: { port: 8080 }', {
		SVC_PORT: '',
		SVC_HOST: '',
		SVC_LOG_LEVEL: '',
		OPENAI_API_KEY: '',
	})
	t.match(config, { server: { port: 8080, host: '127.0.0.1' }, default_provider: 'offline' })
	t.end()
})

void t.test('SVC_LOOPBACK accepts eight words, in upper or lower case, and no other', (t) => {
	for (const word of ['1', 'true', 'yes', 'on', 'TRUE']) {
		t.equal(read(t, 'auth_mode: token', { SVC_LOOPBACK: word }).auth_mode, 'loopback', word)
	}
	for (const word of ['0', 'false', 'no', 'off', 'Off'])
		t.equal(read(t, '# nothing', { SVC_LOOPBACK: word }).auth_mode, 'token', word)
	for (const word of ['', '2', 'loopback', 'maybe']) {
		t.throws(
			() => read(t, '# nothing', { SVC_LOOPBACK: word }),
			{ code: 'config_invalid', message: /SVC_LOOPBACK: must be 1/ },
			word,
		)
	}
	t.end()
})

void t.test('OPENAI_API_KEY alone makes OpenAI the default', (t) => {
	t.same(read(t, '# nothing', { OPENAI_API_KEY: 'k' }).providers, {
		openai: {
			kind: 'openai-responses',
			base_url: 'https://api.openai.com/v1',
			api_key: 'k',
			model: 'gpt-4o-mini',
			timeout_s: 120,
		},
		offline: { kind: 'offline' },
	})
	const config = read(t, 'providers: {}', {
		OPENAI_API_KEY: 'k',
		OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
		OPENAI_MODEL: 'm',
	})
	t.match(config, {
		default_provider: 'openai',
		providers: { openai: { base_url: 'http://127.0.0.1:9/v1', model: 'm' } },
	})
	t.end()
})

void t.test('OPENAI_API_KEY changes nothing if the file sets providers or a default', (t) => {
	const env = { OPENAI_API_KEY: 'k' }
	t.same(read(t, 'providers: { mine: { kind: offline } }', env).providers, { mine: { kind: 'offline' } })
	t.equal(read(t, 'default_provider: offline', env).default_provider, 'offline')
	t.end()
})

void t.test('a problem found later is reported at its setting, or at the enclosing section', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': 'plugins:\n  clock:\n    zone: Mars\n' } })
	const config = readConfig({ home, env: {} })
	const file = configFile(home)
	const placed = (path: string): string => refuse(config, [{ path, message: 'is wrong' }]).message
	t.equal(placed('plugins.clock.zone'), `${file}:3:11: plugins.clock.zone: is wrong`)
	t.equal(placed('plugins.clock.format'), `${file}:2:3: plugins.clock.format: is wrong`)
	t.equal(placed('server.port'), `${file}:1:1: server.port: is wrong`)
	t.strictSame(originOf(config, 'plugins.clock.zone'), { from: 'file', where: `${file}:3:11` })
	t.strictSame(originOf(config, 'server.port'), { from: 'default' })
	t.throws(() => refuse({ ...config }, []), TypeError)
	t.end()
})

void t.test('the home is SVC_HOME, or .svc in the user’s home folder', (t) => {
	t.equal(homeFolder({ SVC_HOME: '/srv/gateway' }), '/srv/gateway')
	t.equal(homeFolder({ SVC_HOME: 'here' }), join(process.cwd(), 'here'))
	t.match(homeFolder({}), /[/\\]\.svc$/)
	t.equal(homeFolder({ SVC_HOME: '' }), homeFolder({}))
	t.equal(homeFolder({ SVC_HOME: '~/x' }), join(homeFolder({}), '../x'))
	t.end()
})

void t.test('a file that cannot be read is refused', (t) => {
	const refused = (home: string, message: RegExp): void =>
		void t.throws(() => readConfig({ home, env: {} }), { code: 'config_invalid', message, errors: [{ path: '' }] })
	refused(t.testdir({ config: { 'gateway.yaml': ' \n' } }), /gateway\.yaml:1:1: is empty; write at least a comment/)
	refused(t.testdir({ config: { 'gateway.yaml': {} } }), /gateway\.yaml: is not a file/)
	refused(
		t.testdir({ config: { 'gateway.yaml': t.fixture('symlink', 'away/gateway.yaml') } }),
		/gateway\.yaml: is a link to away\/gateway\.yaml, which does not exist/,
	)
	refused(t.testdir({ config: { 'gateway.yaml': `#${'x'.repeat(1024 * 1024)}` } }), /larger than 1 MiB/)
	refused(t.testdir({ config: { 'gateway.yaml': Buffer.from([0x23, 0xff, 0xfe]) } }), /not UTF-8/)
	t.end()
})

void t.test('a refusal is a Fault with the code config_invalid', (t) => {
	try {
		read(t, 'server: 1')
		t.fail('it was not refused')
	} catch (error) {
		t.ok(isFault(error, 'config_invalid'))
	}
	t.end()
})
