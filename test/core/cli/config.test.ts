import {
	chmodSync,
	chownSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exampleFile } from '../../../docs/make/example.ts'
import { exitCodes } from '../../../core/cli/contract.ts'
import { composition } from '../../../core/host/config.ts'
import { svcFor } from '../../support/cli.ts'
import { testFolder } from '../../support/folder.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'

const example = exampleFile(composition)

void t.test('init creates a home, and overwrites a provider only with --yes', async (t) => {
	const home = testFolder(t)
	const file = join(home, 'config/gateway.yaml')
	const svc = svcFor({ home })
	const first = await svc(['init'])
	t.equal(first.code, 0)
	t.match(first.stdout, /^Created [^]*svc start/)
	t.equal(readFileSync(file, 'utf8'), example)
	t.equal((await svc(['init', '--json'])).json().created, false)

	const ollama = [
		'init',
		'--kind',
		'openai',
		'--name',
		'ollama',
		'--base-url',
		'http://127.0.0.1:11434/v1',
		'--model',
		'qwen3',
	]
	t.equal((await svc(ollama)).code, 0)
	const changed = readFileSync(file, 'utf8')
	t.match(changed, /^ {2}ollama:\n {4}kind: openai\n {4}base_url: http:\/\/127\.0\.0\.1:11434\/v1\n {4}model: qwen3\n/m)
	t.match(changed, /^default_provider: ollama$/m)
	t.match(changed, '# Seconds that one call may take.')
	const again = await svc(ollama)
	t.equal(again.code, exitCodes.usage)
	t.match(again.stderr, '--yes')
	t.equal((await svc([...ollama.slice(0, -1), 'other', '--yes'])).code, 0)
	t.equal((await svc(['config', 'get', 'providers.ollama.model'])).stdout, 'other\n')

	const second = await svc(['init', '--kind', 'openai', '--model', 'm', '--key-env', 'THE_KEY'], {
		env: { THE_KEY: 'k-1' },
	})
	t.equal(second.code, 0)
	t.match(second.stderr, 'The default provider stays ollama')
	t.match(readFileSync(file, 'utf8'), 'api_key: ${THE_KEY}')
	const unset = await svc(['init', '--kind', 'openai', '--name', 'x', '--model', 'm', '--key-env', 'NO_KEY'], {
		env: { THE_KEY: 'k' },
	})
	t.equal(unset.code, exitCodes.config)
	t.match(unset.stderr, 'the environment variable NO_KEY is not set')
	const key = await svc(['init', '--kind', 'openai', '--name', 'x', '--model', 'm', '--key-env', 'sk-1234567890'])
	t.equal(key.code, exitCodes.usage)
	t.match(key.stderr, '--key-env expects the name of an environment variable')
	t.notMatch(key.stderr, 'sk-1234567890')
	const vault = await svc(['init', '--kind', 'openai', '--name', 'y', '--model', 'm', '--key-secret', 'KEY'], {
		env: { THE_KEY: 'k' },
	})
	t.match(vault.stdout, 'svc vault set KEY')
	t.equal(
		(await svc(['init', '--kind', 'anthropic', '--model', 'm', '--key-env', 'THE_KEY'], { env: { THE_KEY: 'k' } }))
			.code,
		0,
	)
	t.equal((await svc(['init', '--kind', 'ollama', '--model', 'm', '--yes'], { env: { THE_KEY: 'k' } })).code, 0)
	const kinds = readFileSync(file, 'utf8')
	t.match(kinds, /^ {2}anthropic:\n {4}kind: anthropic\n {4}base_url: https:\/\/api\.anthropic\.com\/v1\n/m)
	t.match(kinds, /^ {2}ollama:\n {4}kind: ollama\n {4}base_url: http:\/\/127\.0\.0\.1:11434\/api\n/m)
	t.equal((await svc(['init', '--kind', 'openai'])).code, exitCodes.usage)
	t.equal((await svc(['init', '--kind', 'what'])).code, exitCodes.usage)
})

void t.test('validate prints the line and column of mistakes in any file', async (t) => {
	const home = testFolder(t)
	const svc = svcFor({ home })
	// The default ones may be in use on this machine.
	const ports = { SVC_PORT: '0', SVC_LEGACY_PORT: '0' }
	t.equal((await svc(['config', 'validate'], { env: ports })).code, 0, 'no file means the defaults')
	writeFileSync(join(home, 'wrong.yaml'), 'server:\n  prt: 1\nlog: {level: loud}\n')
	const wrong = await svc(['config', 'validate', 'wrong.yaml'])
	t.equal(wrong.code, exitCodes.config)
	t.match(
		wrong.stderr,
		/wrong\.yaml:2:3: server\.prt: is not a known setting; did you mean "port"\?\n.*wrong\.yaml:3:14: log\.level: must be one of/,
	)
	t.equal((await svc(['config', 'validate', 'missing.yaml'])).code, exitCodes.config)
	t.equal((await svc(['config', 'validate', '--json'], { env: { SVC_PORT: 'x' } })).code, exitCodes.config)
})

void t.test('explain prints meaning, range, default, value and origin of a setting', async (t) => {
	const home = makeHome(
		{ config: 'server:\n  port: 4000\nproviders: {a: {kind: openai, model: m, api_key: sk-hidden}}\n' },
		t,
	)
	const svc = svcFor({ home })
	const file = join(home, 'config/gateway.yaml')
	t.equal(
		(await svc(['config', 'explain', 'server.port'])).stdout,
		`setting: server.port
meaning: Port of the API; 0 picks a free one.
values:  whole number from 0 to 65535
default: 3000
now:     4000
from:    ${file}:2:9
`,
	)
	const byEnv = await svc(['config', 'explain', 'server.port', '--json'], { env: { SVC_PORT: '5000' } })
	t.match(byEnv.json(), { value: 5000, origin: { from: 'environment', variable: 'SVC_PORT' } })
	t.match((await svc(['config', 'explain', 'log.level', '--json'])).json(), {
		value: 'info',
		origin: { from: 'default' },
	})
	t.match((await svc(['config', 'explain', 'providers.a.kind'])).stdout, /values: +openai, or .*, or offline/)
	const unknown = await svc(['config', 'explain', 'runs.limits.step'])
	t.equal(unknown.code, exitCodes.not_found)
	t.match(unknown.stderr, 'did you mean "runs.limits.steps"?')
	const all = await svc(['config', 'explain'])
	for (const key of ['auth_mode', 'webhooks.public_url', 'providers.<name>.base_url', 'plugins.<name>.enabled'])
		t.match(all.stdout, key)
	const shown = await svc(['config', 'get'])
	t.notMatch(shown.stdout, 'sk-hidden')
	t.match(shown.stdout, '"api_key": "(hidden)"')
	t.equal((await svc(['config', 'get', 'providers.a.embedding_model'])).code, exitCodes.not_found)
	t.equal((await svc(['config', 'path'])).stdout, `${file}\n`)
})

void t.test('set and unset validate first, write the file atomically, and keep comments, mode and links', async (t) => {
	const home = testFolder(t)
	const svc = svcFor({ home })
	const folder = join(home, 'config')
	const file = join(folder, 'gateway.yaml')
	t.equal((await svc(['config', 'set', 'server.port', '4000'])).code, 0)
	const wanted = example.replace('#server:', 'server:').replace('  #port: 3000', '  port: 4000')
	t.equal(readFileSync(file, 'utf8'), wanted)
	t.equal(statSync(file).mode & 0o777, 0o600)

	for (const [key, value, message] of [
		['server.port', '70000', /gateway\.yaml:\d+:9: server\.port: must be at most 65535/],
		['server.port', 'null', /has no value/],
		['default_provider', 'nope', /no such provider/],
		['legacy.port', '4000', /must differ/],
	] as const) {
		const refused = await svc(['config', 'set', key, value])
		t.equal(refused.code, exitCodes.config)
		t.match(refused.stderr, message)
	}
	t.equal((await svc(['config', 'set', 'server.prt', '1'])).code, exitCodes.not_found)
	t.equal(readFileSync(file, 'utf8'), wanted, 'nothing was changed')
	t.strictSame(readdirSync(folder).toSorted(), ['gateway.schema.json', 'gateway.yaml'])

	renameSync(file, join(home, 'elsewhere.yaml'))
	symlinkSync(join(home, 'elsewhere.yaml'), file)
	chmodSync(join(home, 'elsewhere.yaml'), 0o640)
	t.equal((await svc(['config', 'unset', 'server.port'])).code, 0)
	t.equal(statSync(join(home, 'elsewhere.yaml')).mode & 0o777, 0o640)
	t.notMatch(readFileSync(join(home, 'elsewhere.yaml'), 'utf8'), 'port: 4000')
	t.equal((await svc(['config', 'unset', 'server.port'])).code, exitCodes.not_found)

	t.match((await svc(['config', 'set', 'log.format', 'json'])).stdout, 'at the next start')
	t.match(
		(await svc(['config', 'set', 'log.level', 'warn'], { env: { SVC_LOG_LEVEL: 'error' } })).stdout,
		'SVC_LOG_LEVEL in the environment takes precedence',
	)
	t.match((await svc(['config', 'set', 'log.level', 'warn'])).stdout, 'already has this value')
	t.equal((await svc(['config', 'set', 'backups.schedule', '0 3 * * *'])).code, 0)
	t.equal((await svc(['config', 'set', 'backups.schedule', 'null'])).code, 0)
	t.equal((await svc(['config', 'set', 'providers."a.b"', '{kind: openai, model: 4o}'])).code, 0)
	t.equal((await svc(['config', 'set', 'providers."a.b".model', '5'])).code, 0)
	t.equal((await svc(['config', 'get', 'providers."a.b".model'])).stdout, '5\n', 'text needs no quotes')
})

void t.test('a file that is not UTF-8 is not changed', async (t) => {
	const home = makeHome({ config: '' }, t)
	const file = join(home, 'config/gateway.yaml')
	const latin1 = Buffer.from('# caf\u00e9\nserver:\n  port: 3001\n', 'latin1')
	writeFileSync(file, latin1)
	const { code, stderr } = await svcFor({ home })(['config', 'set', 'server.port', '4000'])
	t.equal(code, exitCodes.config)
	t.match(stderr, /gateway\.yaml: is not UTF-8 text; save it as UTF-8/)
	t.strictSame(readFileSync(file), latin1)
})

void t.test('an invalid file can be fixed in steps', async (t) => {
	const home = makeHome({ config: 'server: {port: x, host: 5}\n' }, t)
	const svc = svcFor({ home })
	const { code, stderr } = await svc(['config', 'set', 'server.port', '4000'])
	t.equal(code, 0)
	t.match(stderr, 'still wrong in the file: server.host')
	t.equal((await svc(['config', 'set', 'server.host', 'localhost'])).stderr, '')
	t.equal((await svc(['config', 'validate'], { env: { SVC_LEGACY_PORT: '0' } })).code, 0)
})

void t.test('a secret as an argument is refused', async (t) => {
	const home = testFolder(t)
	const svc = svcFor({ home })
	await svc(['config', 'set', 'providers.a', '{kind: openai, model: m}'])
	const refused = await svc(['config', 'set', 'providers.a.api_key', 'sk-123'])
	t.equal(refused.code, exitCodes.usage)
	t.match(refused.stderr, /vault/)
	t.equal((await svc(['config', 'set', 'providers.a.api_key', '{secret: KEY}'])).code, 0)
	t.equal((await svc(['config', 'set', 'providers.a.api_key', '${A_KEY:-}'])).code, 0)
	const given = await svc(['config', 'set', 'providers.a.api_key', '-'], { input: 'sk-123\n' })
	t.equal(given.code, 0)
	t.notMatch(given.stdout + given.stderr, 'sk-123')
	t.match(readFileSync(join(home, 'config/gateway.yaml'), 'utf8'), 'api_key: sk-123\n')
})

void t.test('a running gateway applies a change', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const svc = svcFor(gateway)
	const off = await svc(['config', 'set', 'plugins.webhooks', 'false'])
	t.equal(off.code, 0)
	t.match(off.stdout, 'The running gateway uses it.')
	const names = (await gateway.request('GET', '/v1/plugins')).body.map((one: { name: string }) => one.name)
	t.notOk(names.includes('webhooks'), 'svc waits for the reload')

	const same = await svc(['config', 'set', 'plugins.webhooks', 'false', '--json'])
	t.match(same.json(), { changed: false, gateway: 'in_force' }, 'an unchanged value needs no reload')
	const port = await svc(['config', 'set', 'server.port', '3000'])
	t.match(port.stdout, 'SVC_PORT in the environment of the running gateway takes precedence')
	t.match((await svc(['config', 'set', 'log.format', 'json', '--json'])).json(), { gateway: 'at_next_start' })
	t.match((await svc(['config', 'unset', 'log.format', '--no-wait', '--json'])).json(), { gateway: null })
	mkdirSync(join(gateway.home, 'plugins/empty'))
	const empty = await svc(['config', 'set', 'plugins.empty', 'true'])
	t.match(empty.stdout, /The plugin has a problem: .*no index\.ts/)
	t.equal((await svc(['config', 'unset', 'plugins.empty'])).code, 0)
	const init = await svc([
		'init',
		'--kind',
		'openai',
		'--name',
		'x',
		'--base-url',
		'http://127.0.0.1:9',
		'--model',
		'm',
	])
	t.match(init.stdout, /The running gateway uses it\.\n\nNext:\n/)
})

void t.test('a change that the running gateway would refuse is refused with its reason', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const svc = svcFor(gateway)
	const file = join(gateway.home, 'config/gateway.yaml')
	const before = readFileSync(file, 'utf8')
	const why = /auth_mode: no valid token could administer the gateway.*svc tokens create/
	const refused = await svc(['config', 'set', 'auth_mode', 'token'])
	t.equal(refused.code, exitCodes.config)
	t.match(refused.stderr, why)
	t.match(refused.stderr, 'Nothing was changed.')
	t.equal(readFileSync(file, 'utf8'), before)

	writeFileSync(file, `${before}\nauth_mode: token\n`)
	const unrelated = await svc(['config', 'set', 'runs.limits.steps', '20', '--json'])
	t.equal(unrelated.code, exitCodes.config, 'a valid change while the file is invalid')
	t.match(unrelated.json(), { changed: true, gateway: 'refused' })
	t.match(unrelated.stderr, /still wrong in the file: auth_mode: .*refuses the file as it is now/s)
	t.match(unrelated.stderr, why)
	t.equal((await svc(['config', 'set', 'auth_mode', 'loopback'])).code, 0)
	t.equal(gateway.running.gateway.status.configError(), null)
	await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'] } })
	t.equal((await svc(['config', 'set', 'auth_mode', 'token'])).code, 0)
})

void t.test('settings of built-in plugins are checked without a gateway', async (t) => {
	const home = testFolder(t)
	const svc = svcFor({ home })
	const refused = await svc(['config', 'set', 'plugins.tracing', '{sise: 1}'])
	t.equal(refused.code, exitCodes.config)
	t.match(refused.stderr, /gateway\.yaml:\d+:\d+: plugins\.tracing\.sise: is not a known setting/)
	mkdirSync(join(home, 'plugins/mine'), { recursive: true })
	writeFileSync(
		join(home, 'plugins/mine/index.js'),
		"export default { name: 'mine', config: (joi) => joi.object({ size: joi.number() }) }",
	)
	t.match(
		(await svc(['config', 'set', 'plugins.mine', '{sise: 1}'])).stderr,
		/did you mean "size"/,
		'those of a third-party plugin, too',
	)
	t.equal((await svc(['config', 'set', 'plugins.mine', '{size: 1}'])).code, 0)
	const file = join(home, 'config/gateway.yaml')
	writeFileSync(
		file,
		'plugins:\n  tracing: {sise: 1, color: 2}\n  mcp-server: {nope: 1}\n  metrics: {enabled: false, nope: 1}\n',
	)
	const { code, stderr } = await svc(['config', 'validate'])
	t.equal(code, exitCodes.config)
	t.match(stderr, /plugins\.tracing\.sise: .*\n.*plugins\.tracing\.color: .*\n.*plugins\.mcp-server\.nope: /)
	t.match(stderr, 'plugins.metrics.nope', 'also of a plugin that is off')
	const fixed = await svc(['config', 'unset', 'plugins.tracing.sise'])
	t.equal(fixed.code, 0)
	t.match(fixed.stderr, 'still wrong in the file: plugins.tracing.color')
})

void t.test('a plugin that does not exist is refused, with the most similar name', async (t) => {
	const home = testFolder(t)
	const svc = svcFor({ home })
	mkdirSync(join(home, 'plugins/notes'), { recursive: true })
	for (const [name, value, meant] of [
		['webhoks', 'false', 'webhooks'],
		['note', 'true', 'notes'],
		['note', '{size: 1}', 'notes'],
	] as const) {
		const { code, stderr } = await svc(['config', 'set', `plugins.${name}`, value])
		t.equal(code, exitCodes.config)
		t.match(stderr, new RegExp(`plugins\\.${name}: there is no such plugin.*; did you mean "${meant}"`))
	}
	t.equal((await svc(['config', 'get', '--file', 'plugins'])).code, exitCodes.not_found, 'nothing was changed')
	t.equal((await svc(['config', 'set', 'plugins.other', '{path: ../other}'])).code, 0)
	writeFileSync(join(home, 'config/gateway.yaml'), 'plugins: {gone: true}\n')
	t.equal(
		(await svc(['config', 'set', 'plugins.webhooks', 'false'])).code,
		0,
		'a missing plugin that the file already names',
	)
	t.equal((await svc(['config', 'unset', 'plugins.gone'])).code, 0)
})

void t.test('names inherited from Object and malformed keys are not settings', async (t) => {
	const svc = svcFor({ home: testFolder(t) })
	for (const key of ['toString', 'log.constructor', '__proto__', 'providers.a.valueOf']) {
		for (const argv of [
			['explain', key],
			['get', key],
			['set', key, '1'],
		]) {
			const { code, stderr } = await svc(['config', ...argv])
			t.equal(code, exitCodes.not_found, argv.join(' '))
			t.notMatch(stderr, 'did you mean', argv.join(' '))
		}
	}
	for (const key of ['log..level', '.log', 'log.', 'providers."a'])
		t.match(await svc(['config', 'get', key]), { code: exitCodes.usage, stderr: /is not the name of a setting/ }, key)
})

void t.test("a built-in plugin's setting has two equivalent keys", async (t) => {
	const home = makeHome({ config: '# mine\nplugins:\n  webhooks: {per_minute: 5}\n' }, t)
	const svc = svcFor({ home })
	const file = join(home, 'config/gateway.yaml')
	for (const key of ['webhooks.per_minute', 'plugins.webhooks.per_minute']) {
		t.equal((await svc(['config', 'get', key])).stdout, '5\n')
		t.match((await svc(['config', 'explain', key])).stdout, /webhooks\.per_minute.*gateway\.yaml:3:26/s)
	}
	t.equal((await svc(['config', 'set', 'webhooks.max_per_agent', '7'])).code, 0)
	t.equal((await svc(['config', 'set', 'plugins.events.max_streams', '70'])).code, 0)
	t.match(
		readFileSync(file, 'utf8'),
		/^# mine\nplugins:\n  webhooks: *\{ ?per_minute: 5, max_per_agent: 7 ?\}\n.*events:\n  max_streams: 70\n$/s,
	)
	t.equal((await svc(['config', 'unset', 'webhooks.max_per_agent'])).code, 0)
	t.equal((await svc(['config', 'get', 'webhooks.max_per_agent'])).stdout, '32\n')
	t.equal((await svc(['config', 'validate'], { env: { SVC_PORT: '0', SVC_LEGACY_PORT: '0' } })).code, 0)
})

void t.test("a third-party plugin's setting has two equivalent keys if the file names the plugin", async (t) => {
	const schema = '(joi) => joi.object({ max_length: joi.number(), size: joi.number() })'
	const setUp = (config: string) => {
		const home = makeHome({ config }, t)
		mkdirSync(join(home, 'plugins/notes'), { recursive: true })
		writeFileSync(join(home, 'plugins/notes/index.js'), `export default { name: 'notes', config: ${schema} }`)
		return { svc: svcFor({ home }), text: () => readFileSync(join(home, 'config/gateway.yaml'), 'utf8') }
	}
	const keys = ['notes.max_length', 'plugins.notes.max_length']
	for (const before of [
		'plugins:\n  notes:\n    size: 1\n',
		'notes:\n  size: 1\nplugins:\n  notes: true\n',
		'notes:\n  size: 1\nplugins:\n  notes:\n    enabled: true\n',
	]) {
		for (const [set, unset] of [keys, keys.toReversed()]) {
			const { svc, text } = setUp(before)
			const done = await svc(['config', 'set', set ?? '', '5'])
			t.equal(done.code, 0, done.stderr)
			t.equal(
				text(),
				before.replace(/ +size: 1\n/, (line) => line + line.replace('size: 1', 'max_length: 5')),
			)
			for (const key of keys) {
				t.equal((await svc(['config', 'get', key])).stdout, '5\n')
				t.match((await svc(['config', 'explain', key])).stdout, /plugins\.<name>\.max_length.*gateway\.yaml:\d/s)
			}
			const undone = await svc(['config', 'unset', unset ?? ''])
			t.equal(undone.code, 0, undone.stderr)
			t.equal(text(), before)
		}
	}
	const { svc, text } = setUp('plugins:\n  notes: true\n')
	t.match((await svc(['config', 'set', 'note.max_length', '5'])).stderr, 'note is not a setting')
	t.equal((await svc(['config', 'set', 'notes.max_length', '5'])).code, 0)
	t.match(text(), /^plugins:\n {2}notes:.*max_length: 5/s)
})

void t.test('get prints the value in force and the value of the file separately', async (t) => {
	const gateway = await startGateway({ config: 'server: {port: 4000}\nruns: {max_waiting: 7}\n' })
	t.teardown(() => gateway.stop())
	const svc = svcFor(gateway)
	const port = await svc(['config', 'get', 'server.port'])
	t.equal(port.stdout, '0\n', 'from the environment of the gateway, which svc does not share')
	t.match(port.stderr, 'The file says 4000; SVC_PORT in the environment takes precedence.')
	const explained = await svc(['config', 'explain', 'server.port', '--json'])
	t.match(explained.json(), { value: 0, origin: { from: 'environment', variable: 'SVC_PORT' } })
	t.match(explained.stderr, 'The file says 4000; SVC_PORT in the environment takes precedence.')
	const other = await svc(['config', 'explain', 'runs.max_waiting', '--json'], { env: { SVC_PORT: '1' } })
	t.match(other.json(), { value: 7, origin: { from: 'file', where: /gateway\.yaml:2:21$/ } })
	t.equal((await svc(['config', 'get', 'server.port', '--file'])).stdout, '4000\n')
	t.equal((await svc(['config', 'get', 'runs.limits.steps'])).stdout, '50\n', 'a default')
	t.match(await svc(['config', 'get', 'runs.limits.steps', '--file']), {
		code: exitCodes.not_found,
		stderr: /not set in the file/,
	})
	t.match((await svc(['config', 'get', '--json'])).json(), {
		server: { port: 0 },
		runs: { max_waiting: 7 },
		log: { level: 'fatal' },
	})
	t.strictSame((await svc(['config', 'get', '--file', '--json'])).json(), {
		server: { port: 4000 },
		runs: { max_waiting: 7 },
	})

	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'runs: {max_waiting: none}\n')
	await t.rejects(gateway.running.gateway.reload())
	const waiting = await svc(['config', 'get', 'runs.max_waiting'])
	t.equal(waiting.stdout, '7\n', 'the last valid value')
	t.match(waiting.stderr, 'The file says none; the gateway refuses the file as it is now.')
	const refused = await svc(['config', 'explain', 'runs.max_waiting', '--json'])
	t.match(refused.json(), { value: 7 })
	t.match(refused.stderr, 'The file says none; the gateway refuses the file as it is now.')
})

void t.test('the file keeps its owner when root changes it', { skip: process.getuid?.() !== 0 }, async (t) => {
	const home = makeHome({ config: 'server: {port: 1234}\n' }, t)
	const file = join(home, 'config/gateway.yaml')
	chownSync(file, 12_345, 23_456)
	chmodSync(file, 0o640)
	t.equal((await svcFor({ home })(['config', 'set', 'server.port', '2345'])).code, 0)
	const { uid, gid, mode } = statSync(file)
	t.strictSame([uid, gid, mode & 0o777], [12_345, 23_456, 0o640])
	t.match(readFileSync(file, 'utf8'), '2345')
})
