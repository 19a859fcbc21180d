/** A gateway in a separate process, for tests that kill it. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clusterEnv } from './nats.ts'
import { runnable } from '../../core/cli/launch/bundle.mjs'
import { gatewayFlags } from '../../core/process/handover.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Compiled code is cached between starts, as by `npm start`. */
const compileCache = join(root, 'node_modules/.cache/compile')
const defaultFrom = process.env.SVC_TEST_SOURCES === '1' ? 'sources' : 'bundle'
/** Built at the first start of a gateway, if the sources have changed. */
let bundle: Promise<string> | undefined

/** For NODE_OPTIONS: the user has no home folder, as in a container with an arbitrary user id. */
export const withoutUserHome = `--import=data:text/javascript,${encodeURIComponent(`
	import os from 'node:os'
	import { syncBuiltinESMExports } from 'node:module'
	os.homedir = () => { throw new Error('no such user') }
	syncBuiltinESMExports()
`)}`

export interface GatewayProcess {
	child: ChildProcess
	url: string
	pid: number
	/** Milliseconds from the process's start to its startup banner. */
	ready_ms: number
	/** Standard error so far. */
	errors(): string
	/** SIGKILL; settles when the process is gone. */
	kill(): Promise<void>
	/** SIGTERM; settles with the exit code, once all output has been read. */
	end(): Promise<number | null>
}

export interface SpawnOptions {
	/** `launcher`: as `npm start`. Default: the bundle, which starts faster; for a changed copy, its sources. */
	from?: 'bundle' | 'sources' | 'launcher'
	/** Arguments of the gateway. */
	flags?: string[]
	/** The program's folder: this clone, or a changed copy. */
	program?: string
}

/** Settles once it listens. If it ends before, throws with its output. */
export async function spawnGateway(
	home: string,
	env: NodeJS.ProcessEnv = {},
	{ program = root, from = program === root ? defaultFrom : 'sources', flags = [] }: SpawnOptions = {},
): Promise<GatewayProcess> {
	const file = from === 'bundle' ? await (bundle ??= runnable('core/main.ts')) : 'core/main.ts'
	const began = performance.now()
	const args = [...(from === 'launcher' ? ['core/launch.mjs', 'start'] : [...gatewayFlags, file]), ...flags]
	const child = spawn(process.execPath, args, {
		cwd: program,
		env: {
			PATH: process.env.PATH,
			HOME: home,
			SVC_HOME: home,
			SVC_PORT: '0',
			SVC_LEGACY_PORT: '0',
			SVC_LOG_LEVEL: 'warn',
			NODE_COMPILE_CACHE: compileCache,
			...(await clusterEnv(home)),
			...env,
		},
		stdio: ['ignore', 'pipe', 'pipe'],
	})
	let errors = ''
	child.stderr?.on('data', (data: Buffer) => (errors = (errors + data.toString()).slice(-64 * 1024)))
	const exited = once(child, 'exit')
	const banner = new Promise<void>((resolve) => {
		let text = ''
		child.stdout?.on('data', (data: Buffer) => {
			text += data.toString()
			if (text.includes('listens at')) resolve()
		})
	})
	// `exit` may come before the end of the output.
	const closed = once(child, 'close')
	const early = closed.then(([code, signal]) => {
		throw new Error(`the gateway ended before it listened (${code ?? signal}):\n${errors}`)
	})
	early.catch(() => {})
	await Promise.race([banner, early])
	const ready_ms = performance.now() - began
	const { url } = JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { url: string }
	return {
		child,
		url,
		pid: child.pid ?? 0,
		ready_ms,
		errors: () => errors,
		async kill() {
			child.kill('SIGKILL')
			await exited
		},
		async end() {
			child.kill('SIGTERM')
			const [code] = (await closed) as [number | null]
			return code
		},
	}
}
