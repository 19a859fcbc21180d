/** The gateway with which a page is executed: one that runs already, or the one that the page starts. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startGateway } from '../support/gateway.ts'
import { WAIT_LIMIT_MS, eventually } from '../support/wait.ts'
import type { Done } from './reader.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Place {
	readonly url: string
	readonly legacyUrl: string
	readonly home: string
	/** `npm start`: settles once the gateway is ready. */
	start(env: NodeJS.ProcessEnv): Promise<Done>
	/** Changes a file. Settles once the gateway has applied the change, or the change has failed. */
	changed(file: string, change: () => Promise<Done>): Promise<Done>
	stop(): Promise<void>
}

/** A gateway in this process, which starts fast. */
export async function gatewayHere(): Promise<Place> {
	const tools = mkdtempSync(join(tmpdir(), 'svc-docs-tools-'))
	// Replaces the download of `npx` with an installed package.
	const served = join(root, 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js')
	writeFileSync(join(tools, 'npx'), `#!/bin/sh\nshift 2\nexec ${process.execPath} ${served} "$@"\n`, { mode: 0o755 })
	const gateway = await startGateway({ env: { PATH: `${tools}:${process.env.PATH}` } })
	const { gateway: inner } = gateway.running
	return {
		url: gateway.url,
		legacyUrl: inner.status.url('legacy') ?? '',
		home: gateway.home,
		start: () => Promise.resolve({ code: 1, output: 'this page is executed with a gateway that runs already' }),
		async changed(_file, change) {
			const done = await change()
			if (done.code === 0) await inner.reload()
			return done
		},
		async stop() {
			await gateway.stop()
			rmSync(tools, { recursive: true, force: true })
		},
	}
}

/** A gateway that `npm start` starts in a clone, with a new home. */
export function gatewayToStart(): Place {
	const folder = mkdtempSync(join(tmpdir(), 'svc-docs-home-'))
	const home = join(folder, '.svc')
	let npm: ChildProcess | undefined
	let at = { url: 'http://127.0.0.1:3000', legacy_url: 'http://127.0.0.1:17890' }
	let output = ''

	const generation = async (): Promise<unknown> =>
		((await (await globalThis.fetch(`${at.url}/v1/health`)).json()) as { generation: number }).generation
	return {
		get url() {
			return at.url
		},
		get legacyUrl() {
			return at.legacy_url
		},
		home,
		async start(env) {
			const ports = { SVC_PORT: '0', SVC_LEGACY_PORT: '0' }
			npm = spawn('npm', ['start'], {
				cwd: root,
				env: { ...env, ...ports },
				detached: true,
				stdio: ['ignore', 'pipe', 'pipe'],
			})
			npm.on('error', (error) => (output += error.message))
			for (const stream of [npm.stdout, npm.stderr]) stream?.on('data', (data: Buffer) => (output += data.toString()))
			const file = join(home, 'run/gateway.json')
			await eventually(() => existsSync(file) || npm?.exitCode !== null)
			if (npm.exitCode !== null) return { code: npm.exitCode ?? 1, output }
			at = JSON.parse(readFileSync(file, 'utf8')) as typeof at
			return { code: 0, output }
		},
		async changed(file, change) {
			const config = join(home, 'config/gateway.yaml')
			const [plugin = ''] = file.startsWith(join(home, 'plugins') + sep)
				? file.slice(join(home, 'plugins').length + 1).split(sep)
				: []
			const isInUse = file === config || (plugin !== '' && readFileSync(config, 'utf8').includes(`${plugin}:`))
			const before = isInUse ? await generation() : undefined
			const done = await change()
			if (isInUse && done.code === 0)
				await eventually(generation, (now) => now !== before).catch(() => {
					throw new Error(`the gateway did not apply ${file}:\n${output}`)
				})
			return done
		},
		async stop() {
			if (npm?.pid !== undefined && npm.exitCode === null) {
				const ended = new Promise((resolve) => npm?.once('exit', resolve))
				process.kill(-npm.pid, 'SIGTERM')
				const late = setTimeout(() => process.kill(-(npm?.pid as number), 'SIGKILL'), WAIT_LIMIT_MS)
				await ended
				clearTimeout(late)
				// npm may end before the gateway, which removes its runtime file last.
				await eventually(() => !existsSync(join(home, 'run/gateway.json')))
			}
			rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
		},
	}
}
