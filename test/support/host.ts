/** The plugin host alone: no built-in plugins, third-party plugins from files, a real listener, the in-memory store. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../core/errors.ts'
import { Gateway } from '../../core/gateway.ts'
import type { WantedPlugin } from '../../core/host/desired-state.ts'
import { Loader } from '../../core/host/loader.ts'
import { Listeners } from '../../core/http/listeners.ts'
import { openLog } from '../../core/log/log.ts'
import { openRedactor } from '../../core/redactor/redactor.ts'
import { RunPool } from '../../core/runs/run-pool.ts'
import type { Upgrade } from '../../core/upgrade/upgrade.ts'
import { openMemory } from './memory-engine.ts'

export interface TestHost {
	gateway: Gateway
	/** Sets the desired plugins for the next reload. */
	want(plugins: Record<string, object>): void
	write(path: string, text: string): void
	get(path: string): Promise<{ status: number; body: string }>
	stop(): Promise<void>
}

/** `folder`: an empty folder; `files`: by path below it, such as `clock/index.js`; `made`: called before the start. */
export async function startHost(
	folder: string,
	files: Record<string, string>,
	wanted: Record<string, object>,
	{ upgrade = null, made }: { upgrade?: Upgrade | null; made?: (gateway: Gateway) => void } = {},
): Promise<TestHost> {
	const write = (path: string, text: string): void => {
		mkdirSync(join(folder, path, '..'), { recursive: true })
		writeFileSync(join(folder, path), text)
	}
	mkdirSync(join(folder, 'none'), { recursive: true })
	for (const [path, text] of Object.entries(files)) write(path, text)
	let plugins: WantedPlugin[] = []
	const want = (settings: Record<string, object>): void => {
		plugins = Object.entries(settings).map(([name, one]) => ({
			name,
			builtIn: false,
			settings: { ...one },
			at: `plugins.${name}`,
		}))
	}
	want(wanted)
	const log = openLog({ level: 'silent', format: 'json' })
	const engine = openMemory()
	const gateway = new Gateway({
		upgrade,
		home: folder,
		env: {},
		redactor: openRedactor(),
		engine,
		pool: new RunPool({
			worker: new URL('../../sandbox/worker.ts', import.meta.url),
			threads: 1,
			runs_per_thread: 1,
			log,
		}),
		loader: new Loader(folder),
		log,
		readDesired: () => ({
			plugins,
			listen: { main: { host: '127.0.0.1', port: 0 }, legacy: { host: '127.0.0.1', port: 0 } },
			workers: { threads: 1, runs_per_thread: 1 },
			public_url: null,
			log_level: 'silent',
			refuse: (problems, code = 'config_invalid') =>
				new Fault(code, problems.map(({ path, message }) => `${path}: ${message}`).join('\n')),
		}),
		checkResponses: true,
		listeners: new Listeners(log),
	})
	made?.(gateway)
	await gateway.start()
	return {
		gateway,
		want,
		write,
		async get(path) {
			const response = await fetch(gateway.status.url('main') + path)
			return { status: response.status, body: await response.text() }
		},
		async stop() {
			await gateway.stop(1_000)
			await engine[Symbol.asyncDispose]()
			rmSync(folder, { recursive: true, force: true })
		},
	}
}
