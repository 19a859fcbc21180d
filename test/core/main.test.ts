/** The gateway's process: its start, its end, and errors that prevent the start. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeHome } from '../support/gateway.ts'
import { spawnGateway, withoutUserHome } from '../support/process.ts'
import { eventually } from '../support/wait.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

void t.test('two signals of one Ctrl-C still end the gateway gracefully', async (t) => {
	const home = makeHome()
	const gateway = await spawnGateway(home)
	const exited = once(gateway.child, 'exit')
	gateway.child.kill('SIGINT')
	gateway.child.kill('SIGINT')
	t.strictSame(await exited, [0, null])
	t.notOk(existsSync(join(home, 'run/gateway.json')))
})

void t.test('the gateway stops even if its files cannot be removed, as on a read-only disk', async (t) => {
	const home = makeHome()
	const gateway = await spawnGateway(home)
	const file = join(home, 'run/gateway.json')
	rmSync(file)
	mkdirSync(file)
	t.equal(await gateway.end(), 0, gateway.errors())
	t.notMatch(gateway.errors(), 'did not stop cleanly')
})

/** Starts the gateway as `npm start` does, and waits until it listens. */
async function launch(home: string, { flags = [], env = {} }: { flags?: string[]; env?: NodeJS.ProcessEnv } = {}) {
	const launcher = spawn(process.execPath, [...flags, join(root, 'core/launch.mjs'), 'start'], {
		env: { ...process.env, SVC_HOME: home, SVC_PORT: '0', SVC_LEGACY_PORT: '0', ...env },
		stdio: ['ignore', 'pipe', 'ignore'],
	})
	const out = launcher.stdout as NodeJS.ReadableStream
	const [greeting] = (await once(out, 'data')) as [Buffer]
	const { pid } = JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { pid: number }
	// The gateway has the other end of `out`, which closes when it ends.
	return { launcher, pid, greeting: String(greeting), ended: once(out, 'close') }
}

void t.test('the gateway replaces its launcher, and suggests creating an agent only if none exists', async (t) => {
	const home = makeHome()
	const svc = t.fixture('symlink', join(root, 'core/svc.mjs'))
	const bin = t.testdir({ svc, node_modules: { '.bin': { svc } } })
	// As npx does.
	const first = await launch(home, { env: { PATH: `${bin}/node_modules/.bin:${process.env.PATH}` } })
	t.match(first.greeting, /listens at http/)
	t.equal(first.pid, first.launcher.pid, 'the gateway runs in the process of the launcher')
	t.match(first.greeting, /in this folder:\n.*\n {2}npx svc agents create ada\n {2}npx svc run ada "Hello"/)
	t.notMatch(first.greeting, 'needs a token')
	const { url } = JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { url: string }
	const made = await fetch(`${url}/v1/agents`, {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: JSON.stringify({ name: 'bob' }),
	})
	t.ok(made.ok)
	first.launcher.kill('SIGTERM')
	await first.ended
	t.notOk(existsSync(join(home, 'run/gateway.json')))

	// As in the container image.
	const second = await launch(home, { env: { PATH: `${bin}:${process.env.PATH}`, SVC_LOOPBACK: '0' } })
	t.notMatch(second.greeting, 'agents create')
	t.match(second.greeting, /needs a token: "svc tokens create/)
	t.match(second.greeting, /terminal:\n {2}export SVC_HOME=.*\n {2}svc run bob "Hello"\n[^]*\/v1\/agents\/bob\/runs/)
	second.launcher.kill('SIGTERM')
	await second.ended
})

void t.test('without process.execve, the gateway ends gracefully when the launcher is killed', async (t) => {
	const home = makeHome()
	const without = '--import=data:text/javascript,delete process.execve'
	const { launcher, pid, ended } = await launch(home, { flags: [without] })
	t.not(pid, launcher.pid)
	launcher.kill('SIGKILL')
	await ended
	t.notOk(existsSync(join(home, 'run/gateway.json')))
})

void t.test('the gateway ends gracefully when npm is killed, which does not forward signals', async (t) => {
	const home = makeHome()
	const program = `
		const { spawn } = require('node:child_process')
		const env = { ...process.env, npm_lifecycle_event: 'start' }
		spawn(process.execPath, process.argv.slice(1), { env, stdio: ['ignore', 'inherit', 'ignore'] })`
	const { launcher, ended } = await launch(home, { flags: ['--eval', program, '--'] })
	launcher.kill('SIGKILL')
	await ended
	t.notOk(existsSync(join(home, 'run/gateway.json')))
})

void t.test('a plugin that ends the process is named in the log', async (t) => {
	const line = /\(3\):[^]*"level":60.*"plugin":"exits".*process\.exit\(3\).*switch the plugin off/
	for (const start of ['process.exit(3)', 'setTimeout(() => process.exit(3), 1)']) {
		const files = { 'plugins/exits/index.js': `export default { name: 'exits', start: () => void ${start} }` }
		await t.rejects(spawnGateway(makeHome({ config: 'plugins:\n  exits: true\n', files })), line, start)
	}
})

void t.test('a path that cannot be watched is logged, and the gateway still ends gracefully', async (t) => {
	const home = makeHome({ files: { 'plugins/README': 'for links' } })
	symlinkSync('loop', join(home, 'plugins/loop'))
	const gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	await eventually(() => /cannot be watched.*ELOOP|ELOOP.*cannot be watched/.test(gateway.errors()))
	t.equal(await gateway.end(), 0)
	t.notMatch(gateway.errors(), 'nothing caught it')
})

void t.test('warnings about settings are logged once, not at each reload', async (t) => {
	const code = (start: string): string =>
		`import { writeFileSync } from 'node:fs'; export default { name: 'own', start({ log }) {${start}} }`
	const second = code(`log.warn('started again')`)
	const home = makeHome({
		config: 'plugins: {chat-a: true, own: true}\n',
		files: {
			'plugins/own/index.js': code(`writeFileSync(import.meta.filename, ${JSON.stringify(second)})`),
		},
	})
	const gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	await eventually(() => /started again/.test(gateway.errors()))
	await gateway.end()
	t.equal(gateway.errors().match(/the plugin is now named telegram/g)?.length, 1)
})

void t.test('an invalid gateway.yaml prevents the start, with line and column', async (t) => {
	const home = makeHome({ config: 'server:\n  prot: 1\n' })
	await t.rejects(spawnGateway(home), {
		message: /\(78\).*gateway\.yaml:2:3: server\.prot.*server\.port|\(78\).*prot.*port/s,
	})
})

void t.test('a lock file of the data that cannot be opened prevents the start, and is named', async (t) => {
	const home = makeHome()
	// A folder, which not even root can open as a file.
	mkdirSync(join(home, 'data/lock.mdb'), { recursive: true })
	await t.rejects(spawnGateway(home), {
		message: /\(69\):\nThe gateway does not start\.\nthe data folder .*data cannot be opened: EISDIR.*lock\.mdb/,
	})
})

void t.test('unexpected sockets, or a user without a home folder, prevent the start', async (t) => {
	await t.rejects(spawnGateway(makeHome(), { LISTEN_FDS: '3' }), {
		message: /\(78\):\nThe gateway does not start\.\nLISTEN_FDS hands over 3 sockets/,
	})
	await t.rejects(spawnGateway(makeHome(), { SVC_HOME: undefined, NODE_OPTIONS: withoutUserHome }), {
		message: /\(78\):\nThe gateway does not start\.\nthis user has no home folder; set SVC_HOME/,
	})
})

void t.test('a misspelt environment variable is logged, unless gateway.yaml refers to it', async (t) => {
	const home = makeHome({ config: 'log: {level: "${SVC_LOG_LEVELS}"}\n' })
	const env = { SVC_LOG_LEVELS: 'warn', SVC_PROT: '3001', SVC_TEST_PROT: '1', SVC_MINE: '1', SVC_URL: 'http://x' }
	const gateway = await spawnGateway(home, { SVC_LOG_LEVEL: undefined, ...env })
	t.equal(await gateway.end(), 0)
	t.strictSame(gateway.errors().match(/nothing reads .*?probably meant/g), [
		'nothing reads the variable SVC_PROT; SVC_PORT is probably meant',
	])
})

void t.test('a port in use prevents the start, with the variable to set', async (t) => {
	const other = createServer().listen(0, '127.0.0.1')
	t.teardown(() => other.close())
	await once(other, 'listening')
	const { port } = other.address() as AddressInfo
	await t.rejects(spawnGateway(makeHome(), { SVC_PORT: String(port) }), {
		message: /\(69\).*another program listens there.*SVC_PORT/s,
	})
})

void t.test('a new address applies at once, and is in the runtime file', async (t) => {
	const home = makeHome({ config: 'server:\n  port: 0\n' })
	const gateway = await spawnGateway(home, { SVC_PORT: undefined })
	t.teardown(() => gateway.kill())
	const address = (): string =>
		(JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { url: string }).url
	writeFileSync(join(home, 'config/gateway.yaml'), 'server:\n  port: 0\n  host: 127.0.0.2\n')
	await eventually(() => address() !== gateway.url)
	t.match(address(), 'http://127.0.0.2:')
	t.equal((await fetch(`${address()}/healthz`)).status, 200)
})
