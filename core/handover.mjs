/**
 * What core/launch.mjs and core/svc.mjs share: installing what package-lock.json names, and handing over to the pinned
 * Node that comes with it. Runs on any Node from 20 on.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

const windows = process.platform === 'win32'
const stamp = join(root, 'node_modules/.installed')

/** The gateway itself, as arguments of Node. */
export const gateway = [
	// Room for young objects: by default V8 lets it grow to 48 MiB and more a thread, for nothing that we would notice.
	'--max-semi-space-size=16',
	join(root, 'core/main.ts'),
]

/** Where compiled code is kept between starts. */
export const compileCache = process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/compile')

/** node_modules/.bin/node, where it is installed; else the Node that runs this. */
export function pinnedNode() {
	const node = join(root, 'node_modules/.bin', windows ? 'node.cmd' : 'node')
	return existsSync(node) ? node : process.execPath
}

/**
 * Installs what is missing or out of date. `run` leaves out what only development needs; a full installation serves both.
 * Ends the process where that fails.
 */
export async function install(needs) {
	const wanted = createHash('sha256')
		.update(readFileSync(join(root, 'package-lock.json')))
		.digest('hex')
	const have = existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
	if (have === `${wanted} all` || have === `${wanted} ${needs}`) return
	// Whoever has the packages for development keeps them.
	if (existsSync(join(root, 'node_modules/tap'))) needs = 'all'
	process.stderr.write(`Installing packages ${needs === 'all' ? '' : '(first start only) '}…\n`)
	const args = ['ci', '--ignore-scripts', '--loglevel=error', ...(needs === 'run' ? ['--omit=dev'] : [])]
	// npm itself runs on the Node that called us; under npm its own file is known, which spares a search of PATH.
	const npm = process.env.npm_execpath
	// Standard output belongs to the answer of a command.
	const stdout = 2
	const code = npm
		? await run(process.execPath, [npm, ...args], { stdout })
		: await run(windows ? 'npm.cmd' : 'npm', args, { stdout })
	if (code !== 0) {
		process.stderr.write('The packages could not be installed; see above. Is the npm registry reachable?\n')
		process.exit(code)
	}
	writeFileSync(stamp, `${wanted} ${needs}`)
}

/**
 * Answers with the exit code. Signals go on to the child, which decides itself when to end. `ipc`: a channel tells the
 * child when this process is gone, however it ended.
 */
export function run(command, args, { cwd = root, stdout = 'inherit', ipc = false } = {}) {
	return new Promise((resolve, reject) => {
		const env = { ...process.env, NODE_COMPILE_CACHE: compileCache }
		const stdio = ['inherit', stdout, 'inherit', ...(ipc ? ['ipc'] : [])]
		const child = spawn(command, args, { cwd, stdio, env, shell: windows && command.endsWith('.cmd') })
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
