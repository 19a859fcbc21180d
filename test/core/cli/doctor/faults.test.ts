/** Faults, injected one by one into a home whose gateway does not run: each is found by its id, with a fix. */
import { createHash } from 'node:crypto'
import {
	chmodSync,
	chownSync,
	copyFileSync,
	existsSync,
	mkdirSync,
	readFileSync,
	readdirSync,
	renameSync,
	rmSync,
	statSync,
	symlinkSync,
	unlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { lockHome } from '../../../../core/process/lock.ts'
import { closedPort } from '../../../support/free-ports.ts'
import { svcFor } from '../../../support/cli.ts'
import { testFolder } from '../../../support/folder.ts'
import { listenOnLoopback } from '../../../support/loopback.ts'
import { eventually } from '../../../support/wait.ts'
import { examined, modelKey, problems, setConfig, startHome, withStore } from './healthy-home.ts'
import type { Home } from './healthy-home.ts'

const DAY_MS = 86_400_000

const healthy = startHome(t)

/** Injects a fault, runs the check, and repairs the fault. */
async function finds(
	t: Test,
	id: string,
	fault: { inject: (home: Home) => unknown; repair: (home: Home) => unknown },
	wanted: { level: string; message: RegExp; fix: RegExp },
	options: Parameters<typeof examined>[2] = {},
): Promise<void> {
	const home = await healthy
	await fault.inject(home)
	try {
		const found = problems(await examined(home.home, [id], options))
		t.match(found[0], { id, ...wanted }, id)
		t.notMatch(JSON.stringify(found), new RegExp(`${modelKey}|${home.telegram.token}`), 'no secret is shown')
	} finally {
		await fault.repair(home)
	}
}

/** A change of a file, which is restored afterwards. */
function replaced(path: string, change: (file: string) => unknown) {
	return {
		inject({ home }: Home) {
			copyFileSync(join(home, path), join(home, `${path}.kept`))
			return change(join(home, path))
		},
		repair: ({ home }: Home) => renameSync(join(home, `${path}.kept`), join(home, path)),
	}
}

function configured(change: (config: string) => string) {
	return {
		inject: ({ home, config }: Home) => setConfig(home, change(config)),
		repair: ({ home, config }: Home) => setConfig(home, config),
	}
}

void t.test('a healthy home has no problems, and every check runs', async (t) => {
	const { home } = await healthy
	const report = await examined(home)
	t.strictSame(problems(report), [])
	t.ok(report.summary.ok > 25, `${report.summary.ok} checks`)
	t.strictSame(report.fixed, [])
	const vague = report.checks.filter(({ message }) =>
		/^(it|they|all of them|nobody|somebody|there are none|none)\b/i.test(message),
	)
	t.strictSame(vague, [], 'each message names its subject')
})

void t.test('faults of the program and its packages', async (t) => {
	const root = testFolder(t)
	const modules = join(root, 'node_modules')
	for (const name of ['isolated-vm', 'usearch']) mkdirSync(join(modules, name), { recursive: true })
	writeFileSync(join(root, 'package.json'), '{"engines": {"node": ">=99"}}')
	writeFileSync(join(root, 'package-lock.json'), '{"lockfileVersion": 3}')
	writeFileSync(join(modules, '.installed'), `${createHash('sha256').update('{}').digest('hex')} all`)
	writeFileSync(join(modules, 'isolated-vm/index.js'), 'process.abort()')
	writeFileSync(join(modules, 'usearch/index.js'), "throw new Error('no binary for this machine')")
	symlinkSync(join(import.meta.dirname, '../../../../node_modules/lmdb'), join(modules, 'lmdb'))
	const { home } = await healthy
	const report = await examined(
		home,
		['node.version', 'packages.current', 'native.isolated-vm', 'native.lmdb', 'native.usearch'],
		{ root },
	)
	t.match(report.checks, [
		{ id: 'node.version', level: 'error', message: /at least 99 is needed/, fix: /npm start/ },
		{ id: 'packages.current', level: 'warning', message: /newer than the installed packages/, fix: /npm start/ },
		{ id: 'native.isolated-vm', level: 'error', message: /it ends the process \(SIG/, fix: /rm -rf .*node_modules/ },
		{ id: 'native.lmdb', level: 'ok' },
		{ id: 'native.usearch', level: 'error', message: /no binary for this machine/, fix: /npm start/ },
	])
})

void t.test('faults of files', async (t) => {
	const key = 'keys/vault.key'
	await finds(
		t,
		'home.mode',
		{ inject: ({ home }) => chmodSync(home, 0o755), repair: ({ home }) => chmodSync(home, 0o700) },
		{ level: 'warning', message: /open to other users .*0755/, fix: /chmod 700 / },
	)
	await finds(
		t,
		'keys.mode',
		{
			inject: ({ home }) => chmodSync(join(home, key), 0o640),
			repair: ({ home }) => chmodSync(join(home, key), 0o600),
		},
		{ level: 'error', message: /vault\.key is open to other users .*0640/, fix: /chmod 600 .*replace keys/ },
	)
	if (process.getuid?.() === 0) {
		const giveKey =
			(uid: number) =>
			({ home }: Home) =>
				chownSync(join(home, key), uid, uid)
		await finds(
			t,
			'home.owner',
			{ inject: giveKey(12_345), repair: giveKey(0) },
			{ level: 'error', message: /keys\/vault\.key \(user id 12345\)/, fix: /chown -R 0 / },
		)
		const giveHome =
			(uid: number) =>
			({ home }: Home) =>
				['', 'config'].forEach((part) => chownSync(join(home, part), uid, uid))
		await finds(
			t,
			'home.owner',
			{ inject: giveHome(12_345), repair: giveHome(0) },
			{ level: 'error', message: /another user: config\/gateway\.yaml \(user id 0\)/, fix: /chown -R 12345 / },
		)
	}
	await finds(
		t,
		'run.json-stale',
		{
			inject: ({ home }) => writeFileSync(join(home, 'run/gateway.json'), '{"pid": 1, "url": "http://127.0.0.1:9"}'),
			repair: ({ home }) => unlinkSync(join(home, 'run/gateway.json')),
		},
		{ level: 'warning', message: /left behind by a gateway that was killed/, fix: /svc doctor --fix/ },
	)
	let lock: AsyncDisposable | undefined
	await finds(
		t,
		'home.lock',
		{
			inject: async ({ home }) => (lock = await lockHome(home)),
			repair: () => lock?.[Symbol.asyncDispose](),
		},
		{ level: 'warning', message: new RegExp(`process ${process.pid} uses the home`), fix: /svc start/ },
	)
	await finds(
		t,
		'disk.free',
		configured((config) => `${config}store: {min_free_mib: 1048576}\n`),
		{ level: 'error', message: /below 1048576 MiB .* writes are refused/, fix: /store\.path/ },
	)
})

void t.test('--fix closes what is open and removes what is stale, and nothing else', async (t) => {
	const { home } = await healthy
	const stale = join(home, 'run/gateway.json')
	const key = join(home, 'keys/vault.key')
	chmodSync(home, 0o755)
	chmodSync(key, 0o644)
	writeFileSync(stale, 'broken')
	// A link must not make the doctor change the mode of another file.
	const elsewhere = join(home, 'elsewhere')
	writeFileSync(elsewhere, '', { mode: 0o644 })
	chmodSync(elsewhere, 0o644)
	symlinkSync(elsewhere, join(home, 'keys/link'))
	t.teardown(() => [join(home, 'keys/link'), elsewhere].forEach((file) => unlinkSync(file)))
	const data = readFileSync(join(home, 'data/data.mdb'))
	const report = await examined(home, [], { fix: true })
	t.strictSame(problems(report), [], 'the report is of the checks after the fixes')
	t.strictSame(report.fixed.map(({ id }) => id).toSorted(), ['home.mode', 'keys.mode', 'run.json-stale'])
	t.equal(statSync(home).mode & 0o777, 0o700)
	t.equal(statSync(key).mode & 0o777, 0o600)
	t.equal(statSync(elsewhere).mode & 0o777, 0o644)
	t.notOk(existsSync(stale))
	t.ok(readFileSync(join(home, 'data/data.mdb')).equals(data))
})

void t.test('faults of settings', async (t) => {
	await finds(
		t,
		'config.valid',
		configured((config) => `${config}sever: {port: 1}\n`),
		{ level: 'error', message: /gateway\.yaml:\d+:1: sever: .* "server"\?/, fix: /svc doctor --only config\.valid/ },
	)
	await finds(
		t,
		'config.valid',
		configured((config) => `${config}plugins: {tracing: {sise: 1}}\n`),
		{ level: 'error', message: /gateway\.yaml:\d+:\d+: plugins\.tracing\.sise: /, fix: /--only config\.valid/ },
	)
	const nothing = { inject: () => {}, repair: () => {} }
	const { home } = await healthy
	await finds(
		t,
		'config.unknown-env',
		nothing,
		{ level: 'warning', message: /SVC_PROT; SVC_PORT is probably meant/, fix: /set SVC_PORT/ },
		{ env: { SVC_HOME: home, SVC_PROT: '3000' } },
	)
	await finds(
		t,
		'loopback.public',
		configured((config) => config.replace('{port: 0}', '{port: 0, host: 0.0.0.0}')),
		{ level: 'warning', message: /listens at 0\.0\.0\.0/, fix: /auth_mode: token/ },
	)
	const taken = createServer().listen(0, '127.0.0.1')
	await new Promise((resolve) => taken.once('listening', resolve))
	const { port } = taken.address() as AddressInfo
	await finds(
		t,
		'port.free',
		{ inject: nothing.inject, repair: () => taken.close() },
		{
			level: 'error',
			message: new RegExp(`port ${port} \\(server\\.port\\) is in use by .*\\(process ${process.pid}\\)`),
			fix: /set server\.port/,
		},
		{ env: { SVC_PORT: String(port), SVC_LEGACY_PORT: '0' } },
	)
	await finds(
		t,
		'port.free',
		configured((config) => config.replace('{port: 0}', '{port: 39999, host: 203.0.113.7}')),
		{ level: 'error', message: /203\.0\.113\.7 .*not an address of this machine/, fix: /server\.host/ },
		{ env: {} },
	)
	await finds(
		t,
		'plugin.failed',
		configured((config) => `${config}plugins: {wether: true}\n`),
		{ level: 'error', message: /plugin "wether": .* no index\.ts/, fix: /plugins\.wether false/ },
	)
})

void t.test('third-party plugins are loaded but not started', async (t) => {
	const { home, config } = await healthy
	const files: Record<string, string> = {
		fine: `import { writeFileSync } from 'node:fs'
			export default { name: 'fine', start: () => writeFileSync(new URL('started', import.meta.url), '') }`,
		'bad-syntax': "export default {\n  name: 'bad-syntax',,\n}",
		stranger: "export default { name: 'stranger', begin() {} }",
		needy: "export default { name: 'needy', needs: ['weather'] }",
		settings: "export default { name: 'settings', config: (joi) => joi.object({ size: joi.number() }) }",
		'ends-it': 'process.exit(0)',
	}
	for (const [name, text] of Object.entries(files)) {
		mkdirSync(join(home, 'plugins', name), { recursive: true })
		writeFileSync(join(home, 'plugins', name, 'index.js'), text)
	}
	const wanted = Object.keys(files).map((name) => `  ${name}: ${name === 'settings' ? '{size: large}' : 'true'}\n`)
	setConfig(home, `${config}plugins:\n${wanted.join('')}`)
	t.teardown(() => {
		setConfig(home, config)
		for (const name of Object.keys(files)) rmSync(join(home, 'plugins', name), { recursive: true })
	})
	const found = problems(await examined(home, ['plugin.failed']))
	const error = (message: RegExp) => ({ level: 'error', message, fix: /svc config set plugins\.\S+ false/ })
	t.match(found, [
		error(/^plugin "bad-syntax" does not load: Unexpected token/),
		error(/^plugin "stranger": "begin" is not a part/),
		error(/^plugin "needy" needs plugin "weather"/),
		error(/gateway\.yaml:\d+:\d+: plugins\.settings\.size: /),
		error(/^plugin "ends-it" does not load: its code ends the process \(exit code 0\)/),
	])
	t.equal(found.length, 5)
	t.notOk(existsSync(join(home, 'plugins/fine/started')))

	const endless = join(home, 'plugins/never-done')
	mkdirSync(endless)
	t.teardown(() => rmSync(endless, { recursive: true }))
	writeFileSync(join(endless, 'index.js'), 'for (;;);')
	setConfig(home, `${config}plugins: {never-done: true}\n`)
	const late = problems(await examined(home, ['plugin.failed'], { limits: { plugin: 500 } }))
	t.match(late, [error(/^plugin "never-done" does not load: its code does not finish within 0\.5 s/)])
})

void t.test('checks that need a refused setting state that they did not run', async (t) => {
	const { home, config } = await healthy
	setConfig(home, `${config}sever: {port: 1}\n`)
	t.teardown(() => setConfig(home, config))
	const report = await examined(home, ['config.valid', 'store.intact', 'vault.key', 'provider.model', 'home.mode'])
	t.match(report.checks, [
		{ id: 'home.mode', level: 'ok' },
		{ id: 'config.valid', level: 'error' },
		{ id: 'store.intact', level: 'note', message: /^not checked: gateway\.yaml is refused/, fix: /config\.valid/ },
		{ id: 'provider.model', level: 'note' },
		{ id: 'vault.key', level: 'note' },
	])
})

void t.test('faults of tokens', async (t) => {
	const ending = {
		id: 'soon',
		hash: 'x',
		scopes: ['agents:read'],
		created_at: new Date().toISOString(),
		revoked_at: null,
	}
	const expires_at = new Date(Date.now() + 3 * DAY_MS).toISOString()
	const key = ['auth', 'token', 'soon'] as const
	await finds(
		t,
		'token.expiry',
		{
			inject: ({ home }) => withStore(home, (store) => store.put(key, { ...ending, expires_at })),
			repair: ({ home }) => withStore(home, (store) => store.delete(key)),
		},
		{
			level: 'warning',
			message: new RegExp(`token soon .* expires at ${expires_at}`),
			fix: /svc tokens create --scope/,
		},
	)
	let kept: unknown
	const all = async (home: string, change: (value: Record<string, unknown>) => unknown): Promise<unknown> =>
		withStore(home, async (store) => {
			for await (const { key: id, value } of store.list<Record<string, unknown>>(['auth', 'token'])) {
				kept ??= value
				await store.put(id, change(value))
			}
		})
	await finds(
		t,
		'token.none',
		{
			inject: async ({ home, config }) => {
				setConfig(home, `${config}auth_mode: token\n`)
				await all(home, (value) => ({ ...value, revoked_at: new Date().toISOString() }))
			},
			repair: async ({ home, config }) => {
				setConfig(home, config)
				await all(home, () => kept)
			},
		},
		{ level: 'error', message: /every token was revoked or has expired/, fix: /svc tokens create/ },
	)
})

void t.test('faults of the vault', async (t) => {
	const key = 'keys/vault.key'
	await finds(
		t,
		'vault.key',
		replaced(key, (file) => writeFileSync(file, Buffer.alloc(32, 7).toString('base64'))),
		{ level: 'error', message: /encrypted with a different key/, fix: /restore the right key/ },
	)
	await finds(
		t,
		'vault.key',
		replaced(key, (file) => unlinkSync(file)),
		{ level: 'error', message: /the key of the vault is missing/, fix: /keys\/vault\.key/ },
	)
	t.ok(existsSync(join((await healthy).home, key)), 'the doctor creates no key')
	const { secret } = await healthy
	let record: { about: Uint8Array } | undefined
	const at = ['vault', 'secret', secret] as const
	await finds(
		t,
		'vault.secrets',
		{
			inject: ({ home }) =>
				withStore(home, async (store) => {
					record = (await store.get<{ about: Uint8Array }>(at))?.value
					const about = Uint8Array.from(record?.about ?? [], (byte, n) => (n === 20 ? byte ^ 1 : byte))
					await store.put(at, { ...record, about })
				}),
			repair: ({ home }) => withStore(home, (store) => store.put(at, record)),
		},
		{
			level: 'error',
			message: new RegExp(`secret ${secret} is damaged`),
			fix: new RegExp(`svc vault delete ${secret}`),
		},
	)
})

void t.test('faults of model servers', async (t) => {
	const { models } = await healthy
	const nobody = await closedPort(t)
	const set = (change: Partial<typeof models>) => {
		const before = { ...models }
		return { inject: () => Object.assign(models, change), repair: () => Object.assign(models, before) }
	}
	await finds(
		t,
		'provider.reachable',
		configured((config) => config.replace(models.url, `http://127.0.0.1:${nobody}/v1`)),
		{
			level: 'error',
			message: new RegExp(`house at http://127\\.0\\.0\\.1:${nobody}/v1 does not answer: .*ECONNREFUSED`),
			fix: /curl http/,
		},
	)
	await finds(t, 'provider.key', set({ key: 'another' }), {
		level: 'error',
		message: /house refuses its key \(401\)/,
		fix: /svc vault set HOUSE_KEY/,
	})
	await t.test('a public list of models does not test the key', async (t) => {
		const { inject, repair } = set({ isOpen: true, key: 'another' })
		inject()
		t.teardown(repair)
		t.match((await examined((await healthy).home, ['provider.key'])).checks, [
			{ level: 'ok', message: /house lists its models without a key, so this does not test its key/ },
		])
	})
	await finds(
		t,
		'provider.key',
		configured((config) => config.replace('HOUSE_KEY', 'HOUSE_KAY')),
		{ level: 'error', message: /no secret with the name in providers\.house\.api_key/, fix: /svc vault set/ },
	)
	await finds(t, 'provider.model', set({ models: ['large-chat', 'small-embed'] }), {
		level: 'warning',
		message: /does not list the model small-chat; it has large-chat, small-embed/,
		fix: /providers\.house\.model/,
	})
	await finds(t, 'clock', set({ offMs: -3_600_000 }), {
		level: 'note',
		message: /36\d\d s ahead of that of house/,
		fix: /timedatectl/,
	})
	const manifest = JSON.stringify({
		format: 1,
		embedder: `${models.url} small-embed`,
		dimensions: 4,
		ids: [],
		sha256: '',
	})
	const index = (home: string): string => join(home, 'data/index')
	await finds(
		t,
		'memory.dimensions',
		{
			inject({ home }) {
				mkdirSync(index(home), { recursive: true, mode: 0o700 })
				const digest = createHash('sha256').update(manifest).digest('hex')
				writeFileSync(join(index(home), 'somebody.json'), `${digest}\n${manifest}`)
			},
			repair: ({ home }) => rmSync(index(home), { recursive: true }),
		},
		{
			level: 'error',
			message: /small-embed .* returns 8 dimensions, but embeddings of another size .* somebody \(4\)/,
			fix: /embedding_model/,
		},
	)
	await finds(t, 'memory.dimensions', vectorOf(models.url, 16), {
		level: 'error',
		message: /embeddings of another size .* ada \(16\)/,
		fix: /embedding_model/,
	})
})

/** A stored vector with this number of dimensions. */
function vectorOf(url: string, dimensions: number) {
	const keyOf = async (home: string) =>
		withStore(home, async (store) => {
			const ada = await store.get<{ uid: string }>(['agents', 'ada'])
			return [`agent:${ada?.value.uid}`, 'memory-vector', '0'] as const
		})
	return {
		async inject({ home }: Home) {
			const key = await keyOf(home)
			const value = { embedder: `${url} small-embed`, bytes: new Uint8Array(dimensions * 2) }
			await withStore(home, (store) => store.put(key, value))
		},
		async repair({ home }: Home) {
			const key = await keyOf(home)
			await withStore(home, (store) => store.delete(key))
		},
	}
}

void t.test('a check that hangs or throws is a finding and does not delay others', async (t) => {
	const { home, models } = await healthy
	const root = testFolder(t)
	for (const name of ['isolated-vm', 'lmdb', 'usearch']) {
		mkdirSync(join(root, 'node_modules', name), { recursive: true })
		writeFileSync(join(root, 'node_modules', name, 'index.js'), '')
	}
	writeFileSync(join(root, 'node_modules/lmdb/index.js'), 'for (;;);')
	models.hangs = true
	t.teardown(() => (models.hangs = false))
	const env = new Proxy(
		{ PATH: process.env.PATH, SVC_PORT: '0', SVC_LEGACY_PORT: '0' },
		{
			ownKeys() {
				throw new Error('not readable')
			},
		},
	)
	const native = await examined(home, ['native.lmdb', 'config.unknown-env'], { root, env, limits: { check: 1_000 } })
	t.match(native.checks, [
		{ id: 'native.lmdb', level: 'warning', message: /longer than 1 s/, fix: /svc doctor --only native\.lmdb/ },
		{ id: 'config.unknown-env', level: 'warning', message: /the check failed \(not readable\)/ },
	])
	if (existsSync('/proc/self/cmdline')) await eventually(() => !hasProcess(root))

	const quick = ['home.mode', 'store.intact', 'vault.secrets', 'token.expiry']
	const { checks } = await examined(home, ['provider.reachable', ...quick], { limits: { request: 500 } })
	const found = (id: string) => checks.find((check) => check.id === id)
	t.match(found('provider.reachable'), { level: 'error', message: /does not answer: .* 0\.5 s/ })
	for (const id of quick) t.match(found(id), { level: 'ok' }, id)
})

/** Whether there is a process with this text among its arguments. */
function hasProcess(text: string): boolean {
	return readdirSync('/proc').some((pid) => {
		try {
			return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
		} catch {
			return false // it has ended
		}
	})
}

void t.test('faults of MCP servers and channels', async (t) => {
	const nobody = await closedPort(t)
	const changed = (change: (value: Record<string, unknown>) => unknown) => {
		let kept: { key: readonly [string, ...string[]]; value: unknown } | undefined
		return {
			inject: ({ home }: Home) =>
				withStore(home, async (store) => {
					const ada = await store.get<{ uid: string }>(['agents', 'ada'])
					for await (const entry of store.list<Record<string, unknown>>([`agent:${ada?.value.uid}`, 'mcp', 'server'])) {
						kept = entry
						await store.put(entry.key, change(entry.value))
					}
				}),
			repair: ({ home }: Home) => withStore(home, async (store) => kept && store.put(kept.key, kept.value)),
		}
	}
	await finds(
		t,
		'mcp.command',
		changed((value) => ({ ...value, command: 'no-such-program' })),
		{
			level: 'error',
			message: /house of agent ada needs the program no-such-program/,
			fix: /svc mcp remove ada house/,
		},
	)
	await finds(
		t,
		'mcp.connection',
		changed((value) => ({ ...value, transport: 'http', url: `http://127.0.0.1:${nobody}/mcp` })),
		{ level: 'warning', message: /house of agent ada does not answer/, fix: /svc mcp restart ada house/ },
	)
	await finds(
		t,
		'mcp.connection',
		changed((value) => ({ ...value, trusted: false, transport: 'http', url: `http://127.0.0.1:${nobody}/mcp` })),
		{ level: 'warning', message: /not a public address/, fix: /svc mcp restart/ },
	)
	const { telegram, channel } = await healthy
	const at = [`channel:${channel}`, 'channel'] as const
	let record: unknown
	await finds(
		t,
		'channel.token',
		{
			inject: ({ home }) =>
				withStore(home, async (store) => {
					record = (await store.get<object>(at))?.value
					await store.put(at, { ...(record as object), bot_token_ref: 'GONE' })
				}),
			repair: ({ home }) => withStore(home, (store) => store.put(at, record)),
		},
		{
			level: 'error',
			message: new RegExp(`token of the channel ${channel} .*not in the vault`),
			fix: /svc vault set GONE/,
		},
	)
	let status = 200
	const flags = { flags: 0 }
	const discord = createHttpServer((_request, response) => {
		response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(flags))
	})
	const { url, stop } = await listenOnLoopback(discord)
	t.teardown(stop)
	const api_root = `${url}/api`
	const asDiscord = {
		inject: ({ home }: Home) =>
			withStore(home, async (store) => {
				record = (await store.get<object>(at))?.value
				await store.put(at, { ...(record as object), type: 'chat_b', config: { api_root } })
			}),
		repair: ({ home }: Home) => withStore(home, (store) => store.put(at, record)),
	}
	await finds(t, 'channel.token', asDiscord, {
		level: 'error',
		message: /receives only the text of direct messages and mentions/,
		fix: /Message Content Intent/,
	})
	status = 401
	await finds(t, 'channel.token', asDiscord, {
		level: 'error',
		message: /Discord does not know it/,
		fix: /Reset Token/,
	})
	// The last fault: a revoked token stays invalid.
	await finds(
		t,
		'channel.token',
		{ inject: () => telegram.revoke(), repair: () => {} },
		{ level: 'error', message: /Telegram does not know it \(401\)/, fix: /svc vault set/ },
	)
})

void t.test('faults of backups', async (t) => {
	const past = new Date(Date.now() - 60 * DAY_MS)
	const aged = (schedule: string) => ({
		inject({ home, config }: Home) {
			for (const file of ['keys/vault.key', 'data']) utimesSync(join(home, file), past, past)
			setConfig(home, config + schedule)
		},
		repair({ home, config }: Home) {
			for (const file of ['keys/vault.key', 'data']) utimesSync(join(home, file), new Date(), new Date())
			setConfig(home, config)
		},
	})
	await finds(t, 'backup.recent', aged(''), {
		level: 'note',
		message: /no backup is younger than 30 days: none was ever taken/,
		fix: /svc backup/,
	})
	await finds(t, 'backup.recent', aged('backups: {schedule: "0 3 * * *"}\n'), {
		level: 'warning',
		message: /a backup was due at .*, and none was ever taken/,
		fix: /svc backup/,
	})
	await finds(t, 'backup.recent', aged('store: {url: "nats://127.0.0.1:1"}\n'), {
		level: 'note',
		message: /not checked: the data is in a cluster/,
		fix: /nats stream backup/,
	})
	await finds(t, 'config.valid', aged('backups: {schedule: "61 3 * * *"}\n'), {
		level: 'error',
		message: /backups\.schedule: must be five cron fields/,
		fix: /change it there/,
	})
	await finds(
		t,
		'restore.finished',
		{
			inject: ({ home }) => writeFileSync(join(home, 'restore.journal'), '{}'),
			repair: ({ home }) => unlinkSync(join(home, 'restore.journal')),
		},
		{ level: 'error', message: /a restore was interrupted/, fix: /svc restore/ },
	)
})

void t.test('svc doctor prints findings, fixes them and sets its exit code', async (t) => {
	const { home } = await healthy
	const svc = svcFor({ home })
	const few = ['--only', 'home.mode,keys.mode']
	const clean = await svc(['doctor', ...few, '--json'])
	t.equal(clean.code, 0)
	t.match(clean.json(), {
		checks: [{ id: 'home.mode', level: 'ok', fix: null }, { id: 'keys.mode' }],
		summary: { ok: 2 },
	})
	chmodSync(home, 0o755)
	t.teardown(() => chmodSync(home, 0o700))
	t.match(await svc(['doctor', ...few]), {
		code: 0,
		stdout: /! home\.mode +.*open to other users[^]*→ close it: chmod 700/,
	})
	t.match(await svc(['doctor', ...few, '--strict']), { code: 1, stdout: /1 warning/ })
	chmodSync(join(home, 'keys'), 0o755)
	t.match(await svc(['doctor', ...few]), { code: 1, stdout: /1 error, 1 warning/ })
	t.match(await svc(['doctor', ...few, '--fix']), { code: 0, stdout: /fixed home\.mode: [^]*fixed keys\.mode: / })
	t.match(await svc(['doctor', '--only', 'home.mood']), { code: 2, stderr: /no check "home\.mood"/ })
	const listed = (await svc(['doctor', '--list', '--json'])).json() as { id: string; about: string }[]
	t.equal(new Set(listed.map(({ id }) => id)).size, listed.length, 'ids are unique')
	t.ok(listed.every(({ about }) => about.length > 0))
})
