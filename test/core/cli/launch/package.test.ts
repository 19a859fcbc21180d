/**
 * The package, as npm packs and installs it, in an empty folder. The short version links its dependencies; the long one,
 * SVC_TEST_PACKAGE=install, installs all of them with npm.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
	cpSync,
	existsSync,
	mkdirSync,
	readFileSync,
	readdirSync,
	realpathSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { testFolder } from '../../../support/folder.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const run = promisify(execFile)
const env = { ...process.env, npm_config_prefer_offline: 'true', npm_config_audit: 'false' }

/** Installs the package into a folder, and returns the file of `svc`. */
async function install(folder: string): Promise<string> {
	const packed = ['core/launch.mjs', 'pack', '--pack-destination', folder, '--loglevel=error']
	await run(process.execPath, packed, { cwd: root, env })
	t.notOk(existsSync(join(root, 'dist/types')), 'the generated types are not left in the clone')
	const name = readdirSync(folder).find((one) => one.endsWith('.tgz')) as string
	const archive = join(folder, name)
	if (process.env.SVC_TEST_PACKAGE === 'install') {
		const prefix = join(folder, 'installed')
		await run('npm', ['install', '--global', '--prefix', prefix, '--ignore-scripts', archive], { cwd: folder, env })
		return join(prefix, 'bin/svc')
	}
	const modules = join(folder, 'node_modules')
	mkdirSync(modules)
	for (const one of readdirSync(join(root, 'node_modules')))
		if (one !== '.bin' && one !== '.installed') symlinkSync(join(root, 'node_modules', one), join(modules, one))
	await run('tar', ['-xzf', archive, '-C', modules])
	await run('mv', [join(modules, 'package'), join(modules, 'svc-gateway')])
	return join(modules, 'svc-gateway/core/svc.mjs')
}

void t.test('the package starts, runs an agent, and checks plugins', async (t) => {
	const folder = realpathSync(testFolder(t))
	const svcFile = await install(folder)
	const home = join(folder, 'home')
	const svcEnv = { PATH: process.env.PATH, HOME: folder, SVC_HOME: home, SVC_PORT: '0', SVC_LEGACY_PORT: '0' }
	const options = { cwd: folder, env: svcEnv }
	const svc = async (...words: string[]): Promise<string> =>
		(await run(process.execPath, [svcFile, ...words], options)).stdout

	const gateway = spawn(process.execPath, [svcFile, 'start'], { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
	const ended = once(gateway, 'exit')
	t.teardown(() => gateway.kill('SIGKILL'))
	const [greeting] = (await once(gateway.stdout, 'data')) as [Buffer]
	t.match(String(greeting), 'listens at')
	for (const file of ['gateway.yaml', 'gateway.schema.json']) t.ok(existsSync(join(home, 'config', file)), file)
	await svc('agents', 'create', 'ada')
	t.match(await svc('run', 'ada', 'Hello'), 'received: Hello')

	const { url } = JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { url: string }
	t.match(await (await fetch(`${url}/v1/openapi.yaml`)).text(), /^openapi: 3\.1/)
	t.equal((await fetch(`${url}/docs/swagger-ui.css`)).status, 200)
	cpSync(join(root, 'skills-examples/notes'), join(home, 'plugins/notes'), { recursive: true })
	await svc('config', 'set', 'plugins.notes', 'true')
	t.match(await svc('notes'), 'No notes yet', 'a command of a third-party plugin')
	t.match(await svc('backup', 'create'), 'records:', 'a child process and a thread')

	await svc('plugins', 'new', 'greeter')
	const plugin = join(home, 'plugins/greeter')
	t.match(await svc('plugins', 'check', plugin), 'greeter 0.1.0: it runs')
	await svc('plugins', 'test', 'greeter')
	const reserved = `export default { name: 'greeter', http: (server) =>
		server.route({ method: 'GET', path: '/elsewhere', handler: () => 'x' }) }`
	await svc('config', 'set', 'plugins.greeter', 'true')
	t.match(await svc('doctor', '--only', 'plugin.failed'), /all \d+ plugins run/)

	// As in an editor: the types of the package, checked with the settings of the template.
	const tsc = join(root, 'node_modules/typescript/bin/tsc')
	const services = ['auth', 'channels', 'memory', 'runs', 'vault']
	writeFileSync(
		join(plugin, 'services.ts'),
		`import type { Services } from 'svc-gateway'\nexport const names: (keyof Services)[] = ${JSON.stringify(services)}\n`,
	)
	const types = await run(process.execPath, [tsc, '--listFiles'], { cwd: plugin })
	t.match(types.stdout, 'svc-gateway/dist/types/plugins/types.d.ts')
	t.notMatch(types.stdout, /svc-gateway\/(core|plugins)\/.*\.ts$/m)

	writeFileSync(join(plugin, 'index.ts'), reserved)
	t.match(await svc('plugins', 'check', plugin).catch((error: { stdout: string }) => error.stdout), '/elsewhere')
	gateway.kill('SIGTERM')
	await ended

	// A package that npm alone packed, from a clone without a bundle.
	rmSync(join(realpathSync(svcFile), '../../dist'), { recursive: true })
	t.match(await svc('agents', '--help'), 'svc agents create', 'without a bundle, it builds one')
})
