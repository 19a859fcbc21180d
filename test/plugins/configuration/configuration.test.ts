/** gateway.yaml over HTTP: read it with hidden secrets, validate, replace and change it. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hideValues, restoreValues } from '../../../plugins/configuration/hidden-values.ts'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import { eventually } from '../../support/wait.ts'

const START = `# my gateway
providers:
  local:
    kind: openai
    base_url: http://127.0.0.1:9/v1
    model: qwen3
    api_key: sk-very-secret-1   # from the console
    headers: {authorization: "Bearer very-secret-2"}
  cloud:
    kind: openai
    base_url: https://example.com/v1
    model: m
    api_key: {secret: CLOUD_KEY}
default_provider: local
`

const gateway = await startGateway({ config: START })
t.teardown(() => gateway.stop())
const file = join(gateway.home, 'config', 'gateway.yaml')

void t.test('the response hides the secrets of the file', async (t) => {
	const { status, body } = await gateway.request('GET', '/v1/config')
	t.equal(status, 200)
	t.equal(body.file, file)
	t.equal(body.state, 'in_force')
	t.equal(
		body.text,
		START.replace('sk-very-secret-1', '(hidden 1)').replace('"Bearer very-secret-2"', '(hidden 2)'),
		'names of secrets of the vault are shown',
	)
})

void t.test('validation returns errors with their lines, and the changes of a valid text', async (t) => {
	const { text } = (await gateway.request('GET', '/v1/config')).body
	const invalid = await gateway.request('POST', '/v1/config/validate', {
		body: { text: `${text}server:\n  shutdown_grace_s: soon\n` },
	})
	t.equal(invalid.status, 200)
	t.match(invalid.body, {
		valid: false,
		changes: [],
		errors: [{ path: 'server.shutdown_grace_s', line: 16, column: 21 }],
	})
	t.equal(invalid.body.errors.length, 1)

	const valid = await gateway.request('POST', '/v1/config/validate', {
		body: { text: text.replace('(hidden 1)', 'sk-other') + 'log: {level: warn, format: json}\n' },
	})
	t.strictSame(valid.body, {
		valid: true,
		error: null,
		errors: [],
		warnings: [],
		changes: [
			{ path: 'log.format', before: 'auto', after: 'json', needs_restart: true },
			{ path: 'providers.local.api_key', before: '(hidden)', after: '(hidden)', needs_restart: false },
		],
	})
	t.equal(readFileSync(file, 'utf8'), START, 'validation does not change the file')
})

void t.test('a new text replaces the file, keeps the hidden values, and takes effect', async (t) => {
	const { text, digest } = (await gateway.request('GET', '/v1/config')).body
	const mode = statSync(file).mode
	const { status, body } = await gateway.request('PUT', '/v1/config', {
		body: { text: text.replace('model: qwen3', 'model: qwen4'), digest },
	})
	t.equal(status, 200)
	t.match(body, { state: 'in_force', error: null, errors: [] })
	t.equal(readFileSync(file, 'utf8'), START.replace('model: qwen3', 'model: qwen4'))
	t.equal(statSync(file).mode, mode)

	const outdated = await gateway.request('PUT', '/v1/config', { body: { text, digest } })
	t.equal(outdated.status, 409)
	t.match(outdated.body, { code: 'conflict', message: /GET \/v1\/config/ })
})

void t.test('an invalid text is rejected, and the file stays unchanged', async (t) => {
	const { text, digest } = (await gateway.request('GET', '/v1/config')).body
	const before = readFileSync(file, 'utf8')
	const rejected = await gateway.request('PUT', '/v1/config', { body: { text: `${text}servre: {}\n`, digest } })
	t.equal(rejected.status, 400)
	t.match(rejected.body, { code: 'config_invalid', errors: [{ path: 'servre', line: 15, column: 1 }] })
	const unknown = await gateway.request('PUT', '/v1/config', { body: { text: `${text}# (hidden 9)\n`, digest } })
	t.equal(unknown.status, 400)
	t.match(unknown.body, { code: 'invalid_request', message: /\(hidden 9\)/ })
	t.equal(readFileSync(file, 'utf8'), before)
})

void t.test('a change of several settings is atomic', async (t) => {
	const before = readFileSync(file, 'utf8')
	const rejected = await gateway.request('PATCH', '/v1/config', {
		body: { set: { 'log.format': 'json', 'server.shutdown_grace_s': 'soon' } },
	})
	t.equal(rejected.status, 400)
	t.match(rejected.body, { code: 'config_invalid', errors: [{ path: 'server.shutdown_grace_s' }] })
	t.equal(readFileSync(file, 'utf8'), before)

	const changed = await gateway.request('PATCH', '/v1/config', {
		body: {
			set: { 'providers.other': { kind: 'offline' }, default_provider: 'other' },
			unset: ['providers.local', 'log.level'],
		},
	})
	t.equal(changed.status, 200)
	t.match(changed.body, { state: 'in_force' })
	t.notMatch(changed.body.text, /local|very-secret/)
	t.match(readFileSync(file, 'utf8'), /^# my gateway\n/)
	t.equal((await gateway.request('PATCH', '/v1/config', { body: {} })).status, 400)
})

void t.test('the response for a refused file states the error and its line', async (t) => {
	const good = readFileSync(file, 'utf8')
	writeFileSync(file, `${good}api_keys: very-secret-3\nserver: {shutdown_grace_s: soon}\n`)
	const found = await eventually(async () => {
		const { body } = await gateway.request('GET', '/v1/config')
		return body.state === 'refused' ? body : undefined
	})
	t.match(found.error, /gateway\.yaml:\d+:\d+: server\.shutdown/)
	t.ok(found.errors.every(({ line }: { line?: number }) => Number.isInteger(line)))
	t.notMatch(JSON.stringify(found), /very-secret/)
	const { body } = await gateway.request('PUT', '/v1/config', {
		body: { text: found.text.replace(/^api_keys.*\nserver.*\n/m, ''), digest: found.digest },
	})
	t.equal(body.state, 'in_force')
	t.equal(readFileSync(file, 'utf8'), good)
})

void t.test('only a caller with all scopes can read or change the file', async (t) => {
	for (const [method, path] of [
		['GET', '/v1/config'],
		['PUT', '/v1/config'],
		['PATCH', '/v1/config'],
		['POST', '/v1/config/validate'],
	] as const) {
		const body = method === 'GET' ? undefined : { text: '', digest: '' }
		const scopes = ['agents:read', 'agents:write', 'vault:write']
		const { token } = await addToken(gateway, scopes)
		t.equal((await gateway.request(method, path, { token, body })).status, 403, `${method} ${path}`)
	}
})

void t.test('values that contain secrets are hidden, and restored unchanged', (t) => {
	const texts = [
		'a: {token: "x y", tokens: [one, two], password: \'p\', max_tokens: 12}\n',
		'url: https://user:pass@host/x\nother: https://host/x?a=b@c\n',
		'api_key: |\n  first\n  second\nlog: {level: info}\n',
		'api_key: ${KEY}\nmixed_key: "a${KEY}"\n',
		'broken: [\napi_key: sk-1\n  - token: sk-2\n',
	]
	t.strictSame(texts.map(hideValues), [
		'a: {token: (hidden 1), tokens: [(hidden 2), (hidden 3)], password: (hidden 4), max_tokens: 12}\n',
		'url: (hidden 1)\nother: https://host/x?a=b@c\n',
		'api_key: (hidden 1)\nlog: {level: info}\n',
		'api_key: ${KEY}\nmixed_key: (hidden 1)\n',
		'broken: [\napi_key: (hidden 1)\n  - token: (hidden 2)\n',
	])
	for (const text of texts) t.equal(restoreValues(hideValues(text), text), text)
	t.end()
})
