/** How a skill host is started: with as little as it can run with. */
import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import type { HostSettings } from '../../core/host-protocol.ts'
import { hostProgram } from './host-program.ts'

export interface HostCommand {
	file: string
	args: string[]
	env: NodeJS.ProcessEnv
	/** Holds nothing that the host may read. */
	cwd: string
	/** For its standard input. */
	program: string
}

/** Of the host itself; programs have heaps of their own. */
const OWN_HEAP_MIB = 64

export async function hostCommand(settings: HostSettings): Promise<HostCommand> {
	const program = await hostProgram()
	const args = [
		'--permission',
		'--allow-addons', // isolated-vm is one
		...readable().map((path) => `--allow-fs-read=${path}`),
		'--no-node-snapshot', // isolated-vm wants it
		`--max-old-space-size=${OWN_HEAP_MIB}`,
		'--disable-sigusr1', // which would open the inspector
		'--no-warnings',
		'--input-type=module',
		'-',
		JSON.stringify(settings),
	]
	const node = process.execPath
	if (process.platform === 'win32') {
		// Windows starts no process without it.
		return { file: node, args, env: { SystemRoot: process.env.SystemRoot }, cwd: dirname(node), program }
	}
	if (!existsSync('/bin/sh')) return { file: node, args, env: {}, cwd: '/', program }
	const first = `${limits}; exec ${await withoutNetwork()}"$0" "$@"`
	return { file: '/bin/sh', args: ['-c', first, node, ...args], env: {}, cwd: '/', program }
}

/**
 * No core dump, since it would hold what the program was given; no file grows; few descriptors. And where memory runs out,
 * Linux ends this process first.
 */
const limits = 'ulimit -c 0; ulimit -f 0; ulimit -n 64; echo 1000 2>/dev/null > /proc/self/oom_score_adj'

/** A network namespace of its own, with nothing in it, where the system lets us make one (Linux; not in many containers). */
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

/** isolated-vm, and no other file: the host's own text comes by its standard input. */
function readable(): string[] {
	const isolatedVm = dirname(createRequire(import.meta.url).resolve('isolated-vm/package.json'))
	const loader = dirname(createRequire(`${isolatedVm}/`).resolve('node-gyp-build/package.json'))
	// node-gyp-build looks at the last to tell musl from glibc.
	return [realpathSync(isolatedVm), realpathSync(loader), '/etc/alpine-release']
}
