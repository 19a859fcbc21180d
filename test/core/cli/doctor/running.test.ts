/** The doctor with a running gateway: it uses the gateway's API, and reports what its token does not permit. */
import { mkdirSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { lockHome } from '../../../../core/process/lock.ts'
import { closedPort } from '../../../support/free-ports.ts'
import { servers, until } from '../../../support/mcp.ts'
import { eventually } from '../../../support/wait.ts'
import { examined, modelKey, problems, setConfig, startHome } from './healthy-home.ts'

const healthy = startHome(t)

void t.test('a healthy home has no problems', async (t) => {
	const { home, start } = await healthy
	const gateway = await start()
	t.teardown(() => gateway.stop())
	await connected(home)
	const before = readFileSync(join(home, 'run/gateway.json'), 'utf8')
	const report = await examined(home)
	t.strictSame(problems(report), [])
	const found = (id: string) => report.checks.find((check) => check.id === id)
	t.match(found('home.lock'), { level: 'ok', message: new RegExp(`${gateway.url} \\(process ${process.pid}\\)`) })
	t.match(found('port.free'), { level: 'ok', message: /gateway of this home/ })
	t.match(found('vault.secrets'), { message: 'each secret can be decrypted (2)' })
	t.match(found('mcp.connection'), { message: 'each MCP server answers (1)' })
	t.match(found('channel.connection'), { message: 'each channel is connected (1)' })
	t.match(found('provider.key'), { level: 'ok', message: /house accepts its key/ })
	t.match(found('provider.model'), { level: 'ok', message: /house has small-chat/ })
	t.equal(readFileSync(join(home, 'run/gateway.json'), 'utf8'), before)
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200, 'the gateway still serves requests')
})

void t.test('the doctor uses SVC_TOKEN, and reports the checks that the token does not permit', async (t) => {
	const { home, config, token, start } = await healthy
	setConfig(home, `${config}auth_mode: token\n`)
	const gateway = await start()
	t.teardown(async () => {
		await gateway.stop()
		setConfig(home, config)
	})
	const ids = ['home.lock', 'store.intact', 'token.expiry', 'vault.secrets', 'plugin.failed']
	t.match((await examined(home, ids)).checks, [
		{ id: 'home.lock', level: 'ok' },
		{ id: 'store.intact', level: 'ok' },
		{ id: 'token.expiry', level: 'note', message: /not checked: the gateway requires a token/, fix: /SVC_TOKEN=/ },
		{ id: 'vault.secrets', level: 'note' },
		{ id: 'plugin.failed', level: 'note' },
	])
	const env = { PATH: process.env.PATH }
	const permitted = await examined(home, ids, { env: { ...env, SVC_TOKEN: token } })
	t.strictSame(problems(permitted), [])
	const reader = await gateway.request('POST', '/v1/auth/tokens', { token, body: { scopes: ['agents:read'] } })
	const partial = await examined(home, ids, { env: { ...env, SVC_TOKEN: reader.body.token } })
	t.match(problems(partial), [
		{ id: 'token.expiry', level: 'note', message: /may not read this .*tokens:admin/ },
		{ id: 'vault.secrets', level: 'note', message: /vault:read/ },
	])
	const wrong = await examined(home, ['token.expiry'], { env: { ...env, SVC_TOKEN: `svc_${'x'.repeat(43)}` } })
	t.match(wrong.checks, [{ message: /refuses the token of SVC_TOKEN/ }])
	const malformed = await examined(home, ['token.expiry'], { env: { ...env, SVC_TOKEN: 'two words' } })
	t.match(malformed.checks, [
		{ level: 'note', message: /not checked: SVC_TOKEN does not contain a token/, fix: /SVC_TOKEN=/ },
	])
})

void t.test('faults of a running gateway', async (t) => {
	const { home, config, models, telegram, channel, start } = await healthy
	const gateway = await start()
	t.teardown(() => gateway.stop())
	await connected(home)
	const found = async (id: string) => problems(await examined(home, [id]))

	await t.test('a list of models that is public', async (t) => {
		models.isOpen = true
		t.teardown(() => void (models.isOpen = false))
		t.match((await examined(home, ['provider.key'])).checks, [
			{ level: 'ok', message: /house lists its models without a key, so this does not test its key/ },
		])
	})

	await t.test('a key from the vault that the model server refuses', async (t) => {
		models.key = 'another'
		t.teardown(() => void (models.key = modelKey))
		t.match(await found('provider.key'), [
			{ level: 'error', message: /house refuses its key \(401\)/, fix: /svc vault set HOUSE_KEY/ },
		])
		t.notMatch(JSON.stringify(await found('provider.key')), modelKey)
	})
	await t.test('a model that the server does not have', async (t) => {
		const before = models.models
		models.models = ['large-chat', 'small-embed']
		t.teardown(() => void (models.models = before))
		t.match(await found('provider.model'), [{ level: 'warning', message: /it has large-chat, small-embed/ }])
	})
	await t.test('an MCP server that is not connected', async (t) => {
		const { body } = await gateway.request('POST', '/v1/agents/ada/mcp', {
			body: { name: 'gone', transport: 'stdio', command: 'no-such-program', args: [servers.fixture] },
		})
		await until(gateway, 'ada', body.id, ({ status }) => status === 'error' || status === 'reconnecting')
		t.match(await found('mcp.connection'), [
			{ level: /error|warning/, message: /gone of agent ada is not connected: /, fix: /svc mcp restart ada gone/ },
		])
		t.match(await found('mcp.command'), [{ level: 'error', message: /needs the program no-such-program/ }])
		await gateway.request('DELETE', `/v1/agents/ada/mcp/${body.id}`)
	})
	await t.test('a channel whose messages are delayed', async (t) => {
		const limited = { error_code: 429, description: 'Too Many Requests', parameters: { retry_after: 3600 } }
		telegram.fault('sendRichMessage', limited)
		const chat = telegram.person(7, 'Mia')
		const body = { agent_id: 'ada', channel_id: channel, external_chat_id: String(chat.id) }
		t.equal((await gateway.request('POST', '/v1/channels/pair', { body })).status, 201)
		await eventually(async () => (await found('channel.connection')).length > 0)
		t.match(await found('channel.connection'), [
			{ level: 'warning', message: /\(telegram\) has an error: messages are delayed: /, fix: /svc channels show/ },
		])
	})
	await t.test('a channel that is not connected', async (t) => {
		telegram.revoke()
		telegram.cut()
		await eventually(async () => JSON.stringify(await found('channel.connection')).includes('is not connected'))
		t.match(await found('channel.connection'), [
			{ level: /error|warning/, message: /\(telegram\) is not connected: /, fix: /svc channels show/ },
		])
		t.notMatch(JSON.stringify(await found('channel.connection')), telegram.token)
	})
	await t.test('a plugin that does not start', async (t) => {
		const folder = join(home, 'plugins/broken')
		mkdirSync(folder, { recursive: true })
		writeFileSync(join(folder, 'index.js'), "export default { name: 'broken', start() { throw new Error('no luck') } }")
		setConfig(home, `${config}plugins: {broken: true}\n`)
		await gateway.running.gateway.reload().catch(() => {})
		t.match(await found('plugin.failed'), [
			{ level: 'error', message: /plugin broken: .*no luck/, fix: /plugins\.broken: false/ },
		])
		setConfig(home, config)
		rmSync(folder, { recursive: true })
		await gateway.running.gateway.reload()
	})
	await t.test('settings that are refused', async (t) => {
		setConfig(home, `${config}workers: {threads: 0}\n`)
		await gateway.running.gateway.reload().catch(() => {})
		t.match(await found('config.in-force'), [
			{ level: 'error', message: /is refused.*threads/, fix: /when you save it/ },
		])
		setConfig(home, config)
	})
})

void t.test('a disk that is too full for writes', async (t) => {
	const { home, config, start } = await healthy
	setConfig(home, `${config}store: {min_free_mib: 1048576}\n`)
	const gateway = await start()
	t.teardown(async () => {
		await gateway.stop()
		setConfig(home, config)
	})
	const [found] = problems(await examined(home, ['store.writes']))
	t.match(found, { level: 'error', message: /refuses writes: only .*writes resume without a restart$/ })
	t.notMatch(found?.fix, /restart/, 'the fix does not contradict the message')
})

void t.test('a locked vault', async (t) => {
	const { home, start } = await healthy
	const key = join(home, 'keys/vault.key')
	renameSync(key, `${key}.kept`)
	writeFileSync(key, Buffer.alloc(32, 9).toString('base64'), { mode: 0o600 })
	const gateway = await start()
	t.teardown(async () => {
		await gateway.stop()
		renameSync(`${key}.kept`, key)
	})
	const report = await examined(home, ['vault.key', 'vault.secrets', 'provider.key', 'channel.token'])
	t.match(problems(report), [
		{ id: 'channel.token', level: 'note', fix: /vault\.key/ },
		{ id: 'provider.key', level: 'note' },
		{ id: 'vault.key', level: 'error', message: /encrypted with a different key/ },
		{ id: 'vault.secrets', level: 'note' },
	])
	t.notMatch(JSON.stringify(report), modelKey)
})

void t.test('a gateway that uses the home and does not answer', async (t) => {
	const { home } = await healthy
	const lock = await lockHome(home)
	const file = join(home, 'run/gateway.json')
	writeFileSync(
		file,
		JSON.stringify({ pid: process.pid, url: `http://127.0.0.1:${await closedPort(t)}`, legacy_url: null }),
	)
	t.teardown(async () => {
		await lock[Symbol.asyncDispose]()
		unlinkSync(file)
	})
	t.match((await examined(home, ['home.lock', 'token.expiry', 'store.intact'])).checks, [
		{ id: 'home.lock', level: 'error', message: /uses the home, but nothing answers at/, fix: /kill \d+/ },
		{ id: 'store.intact', level: 'ok' },
		{ id: 'token.expiry', level: 'note', message: /does not answer/, fix: /home\.lock/ },
	])
	// Accepts connections only, as a suspended gateway does.
	const silent = createServer()
	await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
	t.teardown(() => silent.close())
	const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
	writeFileSync(file, JSON.stringify({ pid: process.pid, url, legacy_url: null }))
	t.match((await examined(home, ['home.lock', 'token.expiry'], { limits: { request: 500 } })).checks, [
		{ id: 'home.lock', level: 'error', message: /accepts connections at .*, but does not answer/, fix: /kill \d+/ },
		{ id: 'token.expiry', level: 'note', message: /accepts connections, but does not answer/, fix: /home\.lock/ },
	])
})

/** Channels and MCP servers connect in the background after the start. */
async function connected(home: string): Promise<void> {
	await eventually(async () => {
		const { checks } = await examined(home, ['mcp.connection', 'channel.connection'])
		return checks.every(({ level }) => level === 'ok')
	})
}
