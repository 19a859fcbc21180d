/**
 * What `npm start` and `npm test` call first. Runs on any Node from 20 on: it installs what package-lock.json names and
 * is missing or out of date, and hands over to the pinned Node that came with it (node_modules/.bin/node).
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = join(root, 'node_modules/.installed')
const windows = process.platform === 'win32'
const [task = 'start', ...rest] = process.argv.slice(2)

/** Each task: what must be installed, and the commands to run one after another with the pinned Node. */
const bin = (name) => join(root, 'node_modules', name)
const check = [
	[bin('oxlint/bin/oxlint'), '--type-aware', '--deny-warnings', '.'],
	[bin('oxfmt/bin/oxfmt'), '--check', '.'],
	[bin('typescript/bin/tsc')],
	[bin('knip/bin/knip.js')],
]
const tasks = {
	// Room for young objects: by default V8 lets it grow to 48 MiB and more a thread, for nothing that we would notice.
	start: { needs: 'run', run: [['--max-semi-space-size=16', 'core/main.ts', ...rest]] },
	dev: { needs: 'all', run: [['--watch-path=core', '--watch-path=config', 'core/main.ts', ...rest]] },
	check: { needs: 'all', run: check },
	format: { needs: 'all', run: [[bin('oxfmt/bin/oxfmt'), '.']] },
	test: { needs: 'all', run: [...(rest.length ? [] : check), [bin('tap/dist/esm/run.mjs'), 'run', ...rest]] },
	bench: { needs: 'all', run: [['test/bench/main.ts', ...rest]] },
	conformance: { needs: 'all', run: [['test/conformance/main.ts', ...rest]] },
}

const chosen = tasks[task]
if (!chosen) {
	console.error(`launch: no task "${task}"; there are: ${Object.keys(tasks).join(', ')}`)
	process.exit(2)
}
await install(chosen.needs)
const node = join(root, 'node_modules/.bin', windows ? 'node.cmd' : 'node')
for (const args of chosen.run) {
	const code = await run(existsSync(node) ? node : process.execPath, args)
	if (code !== 0) process.exit(code)
}

/** `run` leaves out what only development needs; a full installation serves both. */
async function install(needs) {
	const wanted = createHash('sha256')
		.update(readFileSync(join(root, 'package-lock.json')))
		.digest('hex')
	const have = existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
	if (have === `${wanted} all` || have === `${wanted} ${needs}`) return
	// Whoever has the packages for development keeps them.
	if (existsSync(bin('tap'))) needs = 'all'
	console.error(needs === 'all' ? 'Installing packages …' : 'Installing packages (first start only) …')
	const args = ['ci', '--ignore-scripts', '--loglevel=error', ...(needs === 'run' ? ['--omit=dev'] : [])]
	// npm itself runs on the Node that called us; under npm its own file is known, which spares a search of PATH.
	const npm = process.env.npm_execpath
	const code = npm ? await run(process.execPath, [npm, ...args]) : await run(windows ? 'npm.cmd' : 'npm', args)
	if (code !== 0) {
		console.error('launch: the packages could not be installed; see above. Is the npm registry reachable?')
		process.exit(code)
	}
	writeFileSync(stamp, `${wanted} ${needs}`)
}

/** Answers with the exit code. Signals go on to the child, which decides itself when to end. */
function run(command, args) {
	return new Promise((resolve, reject) => {
		const env = {
			...process.env,
			NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/compile'),
		}
		// The channel tells the gateway when this process is gone, however it ended.
		const stdio = ['inherit', 'inherit', 'inherit', ...(args.includes('core/main.ts') ? ['ipc'] : [])]
		const child = spawn(command, args, {
			cwd: root,
			stdio,
			env,
			shell: windows && command.endsWith('.cmd'),
		})
		const forward = (signal) => child.kill(signal)
		// npm ends by a signal without passing it on; then nobody is left who could.
		const parent = process.ppid
		const orphaned = setInterval(() => process.ppid !== parent && forward('SIGTERM'), 1_000)
		const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
		for (const signal of signals) process.on(signal, forward)
		child.on('error', reject)
		child.on('exit', (code, signal) => {
			clearInterval(orphaned)
			for (const name of signals) process.off(name, forward)
			resolve(signal ? 128 + 15 : (code ?? 1))
		})
	})
}
