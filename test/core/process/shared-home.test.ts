/** A home that other users can write to: the start, the doctor and a reload refuse it with the same message. */
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { examine } from '../../../core/cli/doctor/doctor.ts'
import { openLog } from '../../../core/log/log.ts'
import { guardHome } from '../../../core/process/home-guard.ts'
import { testFolder } from '../../support/folder.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { GatewayOptions } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import { eventually } from '../../support/wait.ts'

// Windows has no such modes.
const skip = process.platform === 'win32'
const isRoot = process.getuid?.() === 0
const greeter = "export default { name: 'greeter', version: '1', start: () => ({}) }"

function homeFor(t: Test, mode: number, options: Pick<GatewayOptions, 'config' | 'files'> = {}): string {
	const home = makeHome({ config: '# the defaults\n', ...options }, t)
	for (const folder of ['config', 'plugins', 'keys', 'data']) {
		mkdirSync(join(home, folder), { recursive: true })
		chmodSync(join(home, folder), 0o755)
	}
	chmodSync(join(home, 'config/gateway.yaml'), 0o644)
	chmodSync(home, mode)
	return home
}

/** The error of the start; undefined if it starts. */
async function refusal(home: string, env: NodeJS.ProcessEnv = {}): Promise<string | undefined> {
	try {
		const gateway = await startGateway({ home, env })
		await gateway.stop()
		return undefined
	} catch (error) {
		return (error as Error).message
	}
}

async function diagnosis(home: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
	const only = ['home.mode', 'home.owner', 'plugins.mode']
	const { checks } = await examine({ home, env, only })
	return checks.flatMap(({ level, message, fix }) => (level === 'error' ? `${message}; ${fix}` : []))
}

const openings: [path: string, mode: number][] = [
	['', 0o775],
	['', 0o777],
	['config', 0o777],
	['config/gateway.yaml', 0o664],
	['plugins', 0o775],
	['keys', 0o777],
	['data', 0o775],
]

void t.test(
	'start and doctor refuse files that others can write to, with the command that closes them',
	{ skip },
	async (t) => {
		for (const [part, mode] of openings) {
			const home = homeFor(t, 0o755)
			const path = join(home, part)
			chmodSync(path, mode)
			const what = `${part} ${mode.toString(8)}`
			const wanted = `${path} (mode 0${mode.toString(8)}) is writable by ${mode & 0o002 ? 'every user of this machine' : 'its group'}`
			const message = (await refusal(home)) ?? 'the gateway starts'
			t.ok(message.includes(wanted), `${what}: ${message}`)
			t.ok(message.includes(`Run: chmod 700 ${home}\n`), `${what}: ${message}`)
			const [finding = ''] = await diagnosis(home)
			t.ok(finding.includes(wanted), `${what}: ${finding}`)
			t.ok(finding.includes(`chmod 700 ${home}`), `${what}: ${finding}`)

			chmodSync(home, 0o700)
			t.equal(await refusal(home), undefined, `${what}: the command closes it`)
			t.strictSame(await diagnosis(home), [])
		}
	},
)

void t.test(
	'the process prints the command and ends with 78; the override starts it with a warning',
	{ skip },
	async (t) => {
		const home = homeFor(t, 0o777)
		await t.rejects(spawnGateway(home), {
			message: new RegExp(`\\(78\\).*${home} \\(mode 0777\\) is writable by.*Run: chmod 700 ${home}\n`, 's'),
		})
		const gateway = await spawnGateway(home, { SVC_ALLOW_SHARED_HOME: '1' })
		await eventually(() => /SVC_ALLOW_SHARED_HOME is set, although .*mode 0777/.test(gateway.errors()))
		await gateway.kill()
		await t.rejects(spawnGateway(home, { SVC_ALLOW_SHARED_HOME: '0' }), { message: /\(78\)/ })
		t.strictSame(await diagnosis(home, { SVC_ALLOW_SHARED_HOME: '1' }), [], 'then the doctor reports no error')
	},
)

void t.test('in a home that no other user can enter, the modes of files do not matter', { skip }, async (t) => {
	const home = homeFor(t, 0o700, {
		config: 'server: {port: 0}\nplugins: {greeter: true}\n',
		files: { 'plugins/greeter/index.js': greeter },
	})
	for (const part of ['config', 'config/gateway.yaml', 'plugins', 'plugins/greeter', 'plugins/greeter/index.js'])
		chmodSync(join(home, part), 0o777)
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const plugins = (): Promise<{ name: string; state: string; version: string }[]> =>
		gateway.request('GET', '/v1/plugins').then(({ body }) => body)
	t.match(
		(await plugins()).find(({ name }) => name === 'greeter'),
		{ state: 'running' },
	)
	// As an editor with umask 002 saves a file: a new one in place of the old one.
	writeFileSync(join(home, 'plugins/greeter/new.js'), greeter.replace("'1'", "'2'"), { mode: 0o664 })
	rmSync(join(home, 'plugins/greeter/index.js'))
	writeFileSync(join(home, 'plugins/greeter/index.js'), greeter.replace("'1'", "'2'"), { mode: 0o664 })
	await eventually(async () => (await plugins()).find(({ name }) => name === 'greeter')?.version === '2')
	t.strictSame(await diagnosis(home), [])
})

void t.test('links are followed: the modes of their targets are checked', { skip }, async (t) => {
	const real = homeFor(t, 0o777)
	const link = join(testFolder(t), 'home')
	symlinkSync(real, link)
	t.match(await refusal(link), new RegExp(`${real} \\(mode 0777\\).*Run: chmod 700 ${real}\n`, 's'))

	const home = homeFor(t, 0o700)
	const elsewhere = testFolder(t)
	const file = join(elsewhere, 'settings.yaml')
	writeFileSync(file, '# the defaults\n')
	chmodSync(file, 0o666)
	rmSync(join(home, 'config/gateway.yaml'))
	symlinkSync(file, join(home, 'config/gateway.yaml'))
	t.match(await refusal(home), new RegExp(`${file} \\(mode 0666\\).*Run: chmod go-w ${file}\n`, 's'))
	t.match(await diagnosis(home), [/mode 0666.*run: chmod go-w /])
	chmodSync(file, 0o644)
	t.equal(await refusal(home), undefined)
})

void t.test(
	'a file that belongs to another user is refused',
	{ skip: skip || (!isRoot && 'needs root') },
	async (t) => {
		const home = homeFor(t, 0o755)
		chownSync(join(home, 'config/gateway.yaml'), 12_345, 12_345)
		t.match(
			await refusal(home),
			/gateway\.yaml belongs to another user \(id 12345\).*Run: sudo chown -R 0 .*gateway\.yaml/s,
		)
		t.match(await diagnosis(home), [
			/belongs to another user \(id 12345\), so the gateway does not start/,
			/gateway\.yaml/,
		])
		// For root, a home that belongs completely to one other user is accepted.
		for (const part of ['', 'config', 'config/gateway.yaml', 'plugins', 'keys', 'data'])
			chownSync(join(home, part), 12_345, 12_345)
		t.equal(await refusal(home), undefined)
	},
)

void t.test('a change is refused while others can write, and applied once they cannot', { skip }, async (t) => {
	const home = homeFor(t, 0o755, { config: 'runs: {max_waiting: 10}\n' })
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const config = async (): Promise<{ ok: boolean; message: string }> => {
		const { body } = await gateway.request<{ checks: { name: string; ok: boolean; message: string }[] }>(
			'GET',
			'/v1/health',
		)
		return body.checks.find(({ name }) => name === 'config') ?? { ok: false, message: '' }
	}
	const { generation } = (await gateway.request('GET', '/v1/health')).body
	const file = join(home, 'config/gateway.yaml')
	chmodSync(file, 0o666)
	writeFileSync(file, 'runs: {max_waiting: 20}\n')
	await eventually(async () => !(await config()).ok)
	t.match((await config()).message, new RegExp(`mode 0666.*Run: chmod 700 ${home}\n`, 's'))
	t.equal(
		(await gateway.request('GET', '/v1/health')).body.generation,
		generation,
		'the last valid settings stay in force',
	)
	t.match(await diagnosis(home), [/mode 0666/])
	chmodSync(home, 0o700)
	await eventually(async () => (await config()).ok)
	t.equal((await gateway.request('GET', '/v1/health')).body.generation, generation + 1)
	t.equal(readFileSync(file, 'utf8'), 'runs: {max_waiting: 20}\n')
})

void t.test('a plugin outside of the home does not run while others can write to its folder', { skip }, async (t) => {
	const folder = testFolder(t)
	mkdirSync(join(folder, 'node_modules/helper'), { recursive: true })
	const helper = join(folder, 'node_modules/helper/index.js')
	writeFileSync(helper, '')
	writeFileSync(join(folder, 'index.js'), greeter)
	chmodSync(folder, 0o755)
	chmodSync(helper, 0o664)
	const home = homeFor(t, 0o700, { config: `plugins: {greeter: {path: ${folder}}}\n` })
	t.match(await diagnosis(home), [/greeter.*helper\/index\.js \(mode 0664\).*run: chmod -R go-w /])
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const status = async () =>
		(await gateway.request('GET', '/v1/plugins')).body.find(({ name }: { name: string }) => name === 'greeter')
	t.match(await status(), { state: 'failed', last_error: new RegExp(`mode 0664.*run: chmod -R go-w ${folder}$`) })
	chmodSync(helper, 0o644)
	await eventually(async () => (await status())?.state === 'running')
	t.equal((await status()).last_error, null)

	// Now the plugin runs. A change that another user could have made does not replace it.
	chmodSync(join(folder, 'index.js'), 0o666)
	writeFileSync(join(folder, 'index.js'), greeter.replace("'1'", "'2'"))
	await eventually(async () => (await status()).last_error !== null)
	t.match(await status(), { state: 'running', version: '1', last_error: /index\.js \(mode 0666\)/ })
	t.strictSame((await diagnosis(home)).length, 1)
})

void t.test('a refused plugin that was removed is no longer checked', { skip }, async (t) => {
	const home = homeFor(t, 0o755, { files: { 'plugins/greeter/index.js': greeter } })
	const folder = join(home, 'plugins/greeter')
	chmodSync(folder, 0o777)
	const isSafe = Promise.withResolvers<void>()
	const log = openLog({ level: 'silent', format: 'json' })
	const guard = guardHome({ home, env: {}, log, modesFixed: isSafe.resolve, isReady: () => true })
	// The guard's timer is unreferenced, so another one must keep the process alive.
	const keepAlive = setInterval(() => {}, 1_000)
	t.teardown(() => clearInterval(keepAlive))
	t.teardown(() => guard[Symbol.dispose]())
	t.match(guard.refusal(folder), /mode 0777/)
	rmSync(folder, { recursive: true })
	await isSafe.promise
})
