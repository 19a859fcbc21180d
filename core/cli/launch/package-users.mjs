/** Finds processes that run from the packages of a clone: a gateway, a test run. In plain JavaScript, see install.mjs. */
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { join, sep } from 'node:path'

/**
 * Returns the processes whose program, the pinned Node, is in `node_modules`, as `{pid, script}`: without this process and
 * without those that another one of them started. Asks the system, so a killed process leaves nothing behind. Empty on Windows,
 * which refuses to remove the files of a running program.
 */
export function packageUsers(root) {
	const modules = join(realpathSync(root), 'node_modules') + sep
	const users = processes().filter(({ pid, program }) => pid !== process.pid && program.startsWith(modules))
	const pids = new Set(users.map(({ pid }) => pid))
	return users
		.filter(({ parent }) => !pids.has(parent))
		.map(({ pid, args }) => ({ pid, script: scriptOf(args).replace(realpathSync(root) + sep, '') }))
}

/** The arguments of all visible processes, each as a list. Empty on Windows. */
export function commandLines() {
	return processes().map(({ args }) => args)
}

function processes() {
	return process.platform === 'linux' ? fromProc() : process.platform === 'win32' ? [] : fromPs()
}

function fromProc() {
	return readdirSync('/proc').flatMap((name) => {
		if (!/^\d+$/.test(name)) return []
		try {
			const program = readlinkSync(`/proc/${name}/exe`)
			const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
			const parent = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1).split(' ')[1]
			return [{ pid: Number(name), parent: Number(parent), program, args }]
		} catch {
			return [] // the process has ended, or belongs to another user
		}
	})
}

function fromPs() {
	const lines = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8', maxBuffer: 64 << 20 })
	return lines.split('\n').flatMap((line) => {
		const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []
		if (command === undefined) return []
		return [{ pid: Number(pid), parent: Number(parent), program: command, args: command.split(' ') }]
	})
}

/** The first argument that is a file of code. */
function scriptOf(args) {
	return args.slice(1).find((arg) => /\.[cm]?[jt]s$/.test(arg)) ?? args[0]
}
