/** `npm start`, `npm test` and `svc` in one clone: which process installs packages, which wait, and which fail. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { testFolder } from '../../../support/folder.ts'
import { openWatch } from '../../../support/wait.ts'

const core = fileURLToPath(new URL('../../../../core/', import.meta.url))
const launcher = [
	'launch.mjs',
	'process/handover.mjs',
	...['bundle', 'install', 'install-lock', 'package-users'].map((name) => `cli/launch/${name}.mjs`),
]
/** A clone whose gateway only prints that it runs. Its packages are folders in the clone. */
function makeClone(t: Test): string {
	const root = realpathSync(testFolder(t))
	for (const folder of ['core/process', 'core/cli/launch', 'packages/used', 'packages/tap'])
		mkdirSync(join(root, folder), { recursive: true })
	for (const name of launcher) copyFileSync(join(core, name), join(root, 'core', name))
	writeFileSync(join(root, 'core/main.ts'), "console.log('running'); setInterval(() => {}, 1000)")
	for (const name of ['used', 'tap'])
		writeFileSync(join(root, 'packages', name, 'package.json'), JSON.stringify({ name, version: '1.0.0' }))
	writeLock(root, {})
	return root
}

/** The manifest and its lock file. */
function writeLock(root: string, { hasNode = false, note }: { hasNode?: boolean; note?: string }): void {
	const manifest = {
		name: 'clone',
		version: '1.0.0',
		dependencies: { used: 'file:packages/used', ...(hasNode && { node: 'file:node.tar' }) },
		devDependencies: { tap: 'file:packages/tap' },
	}
	const packages = {
		'': manifest,
		'packages/used': { name: 'used', version: '1.0.0' },
		'packages/tap': { name: 'tap', version: '1.0.0', dev: true },
		'node_modules/used': { resolved: 'packages/used', link: true },
		'node_modules/tap': { resolved: 'packages/tap', link: true, dev: true },
		...(hasNode && { 'node_modules/node': { version: '1.0.0', resolved: 'file:node.tar', bin: { node: 'bin/node' } } }),
	}
	const lock = { name: 'clone', version: '1.0.0', lockfileVersion: 3, requires: true, packages, note }
	writeFileSync(join(root, 'package.json'), JSON.stringify(manifest))
	writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lock))
}

/** Makes the clone install Node with a package, as the real one does. */
function pinNode(root: string): void {
	const folder = join(root, 'package')
	mkdirSync(join(folder, 'bin'), { recursive: true })
	copyFileSync(process.execPath, join(folder, 'bin/node'))
	const about = { name: 'node', version: '1.0.0', bin: { node: 'bin/node' } }
	writeFileSync(join(folder, 'package.json'), JSON.stringify(about))
	execFileSync('tar', ['-cf', 'node.tar', 'package'], { cwd: root })
	writeLock(root, { hasNode: true })
}

interface Started {
	pid: number
	/** Its output so far. */
	text(): string
	/** Settles with the match once its output matches. */
	shows(pattern: RegExp): Promise<string>
	/** Its exit code. */
	ended: Promise<number | null>
	kill(signal: NodeJS.Signals): void
}

/** Runs `node core/launch.mjs <task>` as `npm start` and `npm test` do. */
function launch(t: Test, root: string, task: string, env: NodeJS.ProcessEnv = {}): Started {
	const { npm_execpath: _, ...inherited } = process.env
	const offline = { npm_config_offline: 'true', npm_config_audit: 'false', npm_config_update_notifier: 'false' }
	const child = spawn(process.execPath, [join(root, 'core/launch.mjs'), task], {
		cwd: root,
		env: { ...inherited, ...offline, ...env },
		stdio: ['ignore', 'pipe', 'pipe'],
		// With the processes that it starts.
		detached: true,
	})
	const pid = child.pid as number
	const kill = (signal: NodeJS.Signals): void => {
		try {
			process.kill(-pid, signal)
		} catch {
			// It has ended.
		}
	}
	let text = ''
	const watch = openWatch()
	for (const stream of [child.stdout, child.stderr])
		stream.setEncoding('utf8').on('data', (data: string) => {
			text += data
			watch.check()
		})
	const ended = once(child, 'close').then(([code]) => {
		watch.check()
		return code as number | null
	})
	t.teardown(() => kill('SIGKILL'))
	return {
		pid,
		text: () => text,
		ended,
		kill,
		shows: (pattern) =>
			watch.until(
				() => {
					const found = pattern.exec(text)?.[0]
					if (found === undefined && child.exitCode !== null)
						throw new Error(`it ended with ${child.exitCode} and did not print ${pattern}: ${text}`)
					return found
				},
				() => `it did not print ${pattern}: ${text}`,
			),
	}
}

const hasInstalled = (process: Started): boolean => process.text().includes('Installing packages')

void t.test('of several concurrent starts in a fresh clone, one installs and all run', async (t) => {
	const root = makeClone(t)
	const started = Array.from({ length: 4 }, () => launch(t, root, 'start'))
	await Promise.all(started.map((one) => one.shows(/^running$/m)))
	t.equal(started.filter(hasInstalled).length, 1)
	t.ok(existsSync(join(root, 'node_modules/used/package.json')))
	t.match(readFileSync(join(root, 'node_modules/.installed'), 'utf8'), / run$/)
	t.equal(readdirSync(join(root, '.install')).length, 1, 'the lock does not grow')
})

void t.test('without an installed Node, a version that is too old is refused', async (t) => {
	const root = makeClone(t)
	const older = join(root, 'older.mjs')
	writeFileSync(
		older,
		"Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })",
	)
	const started = launch(t, root, 'start', { NODE_OPTIONS: `--import=${older}` })
	t.equal(await started.ended, 69)
	t.match(started.text(), /svc needs Node 24 or newer, and \S+ is Node 20\.20\.2\. Put a newer one first in PATH/)
	t.notMatch(started.text(), 'running')
})

void t.test('the lock of a killed process is free once its npm has ended, too', async (t) => {
	const root = makeClone(t)
	// A program in place of npm that never ends.
	const stuck = join(root, 'stuck.mjs')
	writeFileSync(stuck, "console.error('npm', process.pid); setInterval(() => {}, 1000)")
	const first = launch(t, root, 'start', { npm_execpath: stuck })
	const npm = Number((await first.shows(/^npm \d+$/m)).slice(4))
	const second = launch(t, root, 'start')
	await second.shows(
		new RegExp(`Waiting for process ${first.pid}, which installs packages or builds the bundle in ${root}`),
	)
	process.kill(first.pid, 'SIGKILL')
	await second.shows(new RegExp(`Waiting for process ${npm},`))
	t.notOk(hasInstalled(second))
	process.kill(npm, 'SIGKILL')
	await second.shows(/^running$/m)
	t.ok(hasInstalled(second))
})

void t.test('packages in use are not replaced, and development packages can be added to them', async (t) => {
	const root = makeClone(t)
	pinNode(root)
	const gateway = launch(t, root, 'start')
	await gateway.shows(/^running$/m)
	const used = statSync(join(root, 'node_modules/node/bin/node')).ino
	const checks = launch(t, root, 'docs')
	await checks.ended
	t.notOk(hasInstalled(checks), 'this task needs no more packages')
	const tests = launch(t, root, 'bench')
	await tests.ended
	t.ok(hasInstalled(tests))
	t.ok(existsSync(join(root, 'node_modules/tap/package.json')), 'added')
	t.equal(statSync(join(root, 'node_modules/node/bin/node')).ino, used, 'the installed file is not replaced')
	t.match(readFileSync(join(root, 'node_modules/.installed'), 'utf8'), / all$/)

	writeLock(root, { hasNode: true, note: 'of another version' })
	let pid = 0
	for (const task of ['start', 'bench']) {
		const refused = launch(t, root, task)
		t.equal(await refused.ended, 69, task)
		t.match(refused.text(), /cannot be replaced while they are in use by process \d+ \(core\/main\.ts\)\. .*kill \d+/)
		t.notOk(hasInstalled(refused))
		pid = Number(/in use by process (\d+)/.exec(refused.text())?.[1])
	}
	t.equal(statSync(join(root, 'node_modules/node/bin/node')).ino, used)
	process.kill(pid, 'SIGKILL')
	await gateway.ended
	const after = launch(t, root, 'start')
	await after.shows(/^running$/m)
	t.ok(hasInstalled(after))
})
