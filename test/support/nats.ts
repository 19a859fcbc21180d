/** NATS servers on loopback, for tests. */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts } from './free-ports.ts'
import { eventually } from './wait.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
let found: { path?: string; reason?: string } | undefined

/**
 * The reason why tests with NATS are skipped, or false. With `SVC_TEST_NATS=required` they fail instead. The first call in a fresh
 * clone may download the server from the Debian archive.
 */
export function withoutNats(): string | false {
	const { reason } = natsServer()
	if (reason === undefined) return false
	if (process.env.SVC_TEST_NATS === 'required') throw new Error(`SVC_TEST_NATS=required, and there is ${reason}`)
	return reason
}

function natsServer(): { path?: string; reason?: string } {
	if (found) return found
	const cache = join(root, 'node_modules/.cache/nats')
	const { status, stdout, stderr } = spawnSync('sh', [join(root, 'test/support/get-nats.sh'), cache], {
		encoding: 'utf8',
		timeout: 120_000,
	})
	const path = stdout?.trim()
	found =
		status === 0 && existsSync(path) ? { path } : { reason: stderr?.trim().split('\n').at(-1) || 'no nats-server' }
	return found
}

/** The path of the program. Call `withoutNats` first. */
export function natsPath(): string {
	return natsServer().path ?? ''
}

export interface NatsNode {
	name: string
	/** `127.0.0.1:PORT` */
	address: string
	child: ChildProcess
	/** SIGKILL; settles when the process is gone. */
	kill(): Promise<void>
	/** Starts it again on its stored data. */
	start(): Promise<void>
}

export interface NatsCluster extends AsyncDisposable {
	/** For `store.url`. */
	url: string
	nodes: NatsNode[]
	/** Contains the data of the servers. */
	folder: string
}

export interface NatsClusterOptions {
	/** Additional lines of each server's configuration. */
	more?: string
	/** Default `16MB`. */
	max_payload?: string
	/** Acknowledges only data on the disk (`sync_interval: always`). Default off, since tests kill processes, not machines. */
	sync?: boolean
}

/** Starts servers, and settles once they have elected a leader. Disposing of them kills them and removes their data. */
export async function startNats(count: 1 | 3 = 1, options: NatsClusterOptions = {}): Promise<NatsCluster> {
	for (let attempt = 1; ; attempt++) {
		try {
			return await startOnce(count, options)
		} catch (error) {
			// Another test may have taken a port meanwhile.
			if (attempt === ATTEMPTS) throw error
		}
	}
}

const ATTEMPTS = 3

async function startOnce(count: 1 | 3, options: NatsClusterOptions): Promise<NatsCluster> {
	const { path } = natsServer()
	if (path === undefined) throw new Error('there is no nats-server: ask withoutNats() first')
	const folder = mkdtempSync(join(tmpdir(), 'nats-'))
	const ports = await freePorts(count * 3)
	const routes = ports.slice(count, 2 * count).map((port) => `nats://127.0.0.1:${port}`)
	const nodes = Array.from({ length: count }, (_, at): NatsNode => {
		const name = `n${at + 1}`
		const file = join(folder, `${name}.conf`)
		writeFileSync(
			file,
			[
				`server_name: ${name}`,
				`listen: 127.0.0.1:${ports[at]}`,
				`http: 127.0.0.1:${ports[2 * count + at]}`,
				`max_payload: ${options.max_payload ?? '16MB'}`,
				`jetstream { store_dir: ${JSON.stringify(join(folder, name))}${options.sync ? ', sync_interval: always' : ''} }`,
				...(count > 1
					? [`cluster { name: test, listen: 127.0.0.1:${ports[count + at]}, routes: [${routes.join(', ')}] }`]
					: []),
				options.more ?? '',
			].join('\n'),
		)
		mkdirSync(join(folder, name), { recursive: true })
		const node: NatsNode = {
			name,
			address: `127.0.0.1:${ports[at]}`,
			child: undefined as unknown as ChildProcess,
			async kill() {
				const { child } = node
				if (child.exitCode !== null || child.signalCode !== null) return
				const gone = once(child, 'exit')
				child.kill('SIGKILL')
				await gone
			},
			async start() {
				node.child = spawn(path, ['-c', file, '-l', join(folder, `${name}.log`)], { stdio: 'ignore' })
				await eventually(async () => {
					if (node.child.exitCode !== null)
						throw new Error(`nats-server ended: ${readFileSync(join(folder, `${name}.log`), 'utf8').slice(-2000)}`)
					return answers(ports[2 * count + at] as number, '/healthz?js-enabled-only=true')
				})
			},
		}
		return node
	})
	const dispose = async (): Promise<void> => {
		await Promise.all(nodes.map((node) => node.child && node.kill()))
		rmSync(folder, { recursive: true, force: true })
	}
	try {
		await Promise.all(nodes.map((node) => node.start()))
		await eventually(() => answers(ports[2 * count] as number, '/healthz'))
		return {
			url: nodes.map(({ address }) => `nats://${address}`).join(','),
			nodes,
			folder,
			[Symbol.asyncDispose]: dispose,
		}
	} catch (error) {
		await dispose()
		throw error
	}
}

let shared: Promise<NatsCluster> | undefined

/** Whether the tests' gateways store their data on a NATS server, where backups are not available. */
export const isOnCluster = process.env.SVC_TEST_STORE === 'nats'

/**
 * With `SVC_TEST_STORE=nats`, the variables by which a gateway stores its data on a NATS server. All tests of this process share the
 * server, and each home has a separate prefix. Otherwise empty.
 */
export async function clusterEnv(home: string): Promise<NodeJS.ProcessEnv> {
	if (!isOnCluster) return {}
	shared ??= startNats().then((cluster) => {
		process.once('exit', () => cluster.nodes.forEach(({ child }) => child.kill('SIGKILL')))
		for (const { child } of cluster.nodes) child.unref()
		return cluster
	})
	return {
		SVC_CLUSTER: (await shared).url,
		SVC_CLUSTER_PREFIX: hash('sha256', home).slice(0, 16),
		SVC_CLUSTER_REPLICAS: '1',
	}
}

/** The folder that contains a home's data. */
export async function dataFolder(home: string): Promise<string> {
	return isOnCluster && shared ? (await shared).folder : join(home, 'data')
}

async function answers(port: number, path: string): Promise<boolean> {
	try {
		const { ok, body } = await fetch(`http://127.0.0.1:${port}${path}`)
		await body?.cancel()
		return ok
	} catch {
		return false
	}
}
