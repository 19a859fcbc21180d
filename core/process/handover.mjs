/**
 * For core/launch.mjs and core/svc.mjs: hands over to the pinned Node that is installed with the packages. Runs on Node 20 and
 * newer.
 */
import { existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

const windows = process.platform === 'win32'

/** The version of Node that the gateway and svc need. */
const NODE_MAJOR = 24
/** EX_UNAVAILABLE, as when the gateway cannot start. */
export const UNAVAILABLE = 69

/**
 * Node's flags for the gateway's process. By default V8 lets the space for young objects grow to 48 MiB and more per thread,
 * without a measurable gain.
 */
export const gatewayFlags = ['--max-semi-space-size=16']

/** Where compiled code is kept between starts. An installed package may be in a folder that its user may not write to. */
export const compileCache =
	process.env.NODE_COMPILE_CACHE ??
	(existsSync(join(root, 'package-lock.json'))
		? join(root, 'node_modules/.cache/compile')
		: join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-gateway/compile'))

/** node_modules/.bin/node, if it is installed; else the Node that runs this. Ends the process if that one is too old. */
export function pinnedNode() {
	const node = join(root, 'node_modules/.bin', windows ? 'node.cmd' : 'node')
	if (existsSync(node)) return node
	if (Number.parseInt(process.versions.node) >= NODE_MAJOR) return process.execPath
	// An installed package has its Node elsewhere, or none on some systems.
	process.stderr.write(
		`svc needs Node ${NODE_MAJOR} or newer, and ${process.execPath} is Node ${process.versions.node}. ` +
			`Put a newer one first in PATH, or run svc by npx.\n`,
	)
	return process.exit(UNAVAILABLE)
}

/**
 * Replaces this process by a command, and never returns. If Node cannot do that (before 22.15, on Windows, and with sockets that
 * were handed over), runs the command as a child process and returns its exit code. The child is told when this process ends.
 */
export async function replaceBy(command, args, { cwd = root } = {}) {
	const sockets = Number(process.env.LISTEN_FDS) || 0
	// A replaced Node closes all inherited descriptors except the standard ones.
	if (!process.execve || windows || sockets > 0) return run(command, args, { cwd, ipc: true, sockets })
	process.chdir(cwd)
	const file = realpathSync(command)
	process.execve(file, [file, ...args], { ...process.env, NODE_COMPILE_CACHE: compileCache })
}

/**
 * Runs a command as a child process and returns its exit code. Signals are forwarded to the child, which decides when to end.
 * `ipc`: a channel tells the child when this process ends, for whatever reason. `sockets`: the number of listening sockets that
 * this process was handed, from descriptor 3 on; the child gets them. `variables`: defaults for its environment; those of this
 * process take precedence. `started` is called with the child's process id.
 */
export async function run(
	command,
	args,
	{ cwd = root, stdout = 'inherit', ipc = false, sockets = 0, variables = {}, started = () => {} } = {},
) {
	const { spawn } = await import('node:child_process') // loaded only if the process cannot be replaced
	return new Promise((resolve, reject) => {
		const env = { ...variables, ...process.env, NODE_COMPILE_CACHE: compileCache }
		// It names this process; with it, the child would ignore the sockets.
		if (sockets > 0) delete env.LISTEN_PID
		const handed = Array.from({ length: sockets }, (_, at) => 3 + at)
		const stdio = ['inherit', stdout, 'inherit', ...handed, ...(ipc ? ['ipc'] : [])]
		const child = spawn(command, args, { cwd, stdio, env, shell: windows && command.endsWith('.cmd') })
		if (child.pid !== undefined) started(child.pid)
		const forward = (signal) => child.kill(signal)
		// npm exits on a signal without forwarding it. Then only this check can tell the child.
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
