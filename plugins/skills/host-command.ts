/** The command that starts a skill host with minimal permissions. */
import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import type { HostSettings } from '../../sandbox/host-protocol.ts'
import { hostProgram } from './host-program.ts'

export interface HostCommand {
	file: string
	args: string[]
	env: NodeJS.ProcessEnv
	/** An empty folder that the host may read. */
	cwd: string
	/** The code for its standard input. */
	program: string
}

/** Heap of the host itself. Programs have their own heaps. */
const OWN_HEAP_MIB = 64

export async function hostCommand(settings: HostSettings): Promise<HostCommand> {
	const program = await hostProgram()
	const args = [
		'--permission',
		'--allow-addons', // isolated-vm is one
		...readable().map((path) => `--allow-fs-read=${path}`),
		'--no-node-snapshot', // isolated-vm requires it
		`--max-old-space-size=${OWN_HEAP_MIB}`,
		'--disable-sigusr1', // which would open the inspector
		'--no-warnings',
		'--input-type=module',
		'-',
		JSON.stringify(settings),
	]
	const node = process.execPath
	if (process.platform === 'win32') {
		// Windows cannot start a process without this variable.
		return { file: node, args, env: { SystemRoot: process.env.SystemRoot }, cwd: dirname(node), program }
	}
	if (!existsSync('/bin/sh')) return { file: node, args, env: {}, cwd: '/', program }
	const first = `${limits}; exec ${await withoutNetwork()}"$0" "$@"`
	return { file: '/bin/sh', args: ['-c', first, node, ...args], env: {}, cwd: '/', program }
}

/**
 * No core dump, since it would contain the program's data; no file writes; few descriptors. If memory runs out,
 * Linux kills this process first.
 */
const limits = 'ulimit -c 0; ulimit -f 0; ulimit -n 64; echo 1000 2>/dev/null > /proc/self/oom_score_adj'

/** Gives the host an empty network namespace, if the system permits that (Linux; not in many containers). */
async function withoutNetwork(): Promise<string> {
	const unshare = '/usr/bin/unshare'
	const flags = ['--user', '--map-current-user', '--net']
	if (process.platform !== 'linux' || !existsSync(unshare)) return ''
	try {
		await promisify(execFile)(unshare, [...flags, '/bin/true'], { timeout: 5_000 })
		return `${unshare} ${flags.join(' ')} `
	} catch {
		return ''
	}
}

/** The files that a host may read: only those of isolated-vm. The host's own code comes from standard input. */
function readable(): string[] {
	const isolatedVm = dirname(createRequire(import.meta.url).resolve('isolated-vm/package.json'))
	const loader = dirname(createRequire(`${isolatedVm}/`).resolve('node-gyp-build/package.json'))
	// node-gyp-build reads the last one to distinguish musl from glibc.
	return [realpathSync(isolatedVm), realpathSync(loader), '/etc/alpine-release']
}
