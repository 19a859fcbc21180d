/** A gateway in this process, filled with runs and events, which counts reads of its store. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerWith } from '../peer.ts'
import { rowsRead } from './counting-lmdb.ts'

const counting = new URL('./counting-lmdb.ts', import.meta.url).href
registerHooks({
	resolve: (specifier, context, next) =>
		specifier === 'lmdb' && context.parentURL !== counting
			? { url: counting, shortCircuit: true }
			: next(specifier, context),
})
const { boot } = await import('../../../core/boot.ts')

const AGENTS = 20
const LANES = 128

const home = mkdtempSync(join(tmpdir(), 'svc-bench-'))
process.once('exit', () => rmSync(home, { recursive: true, force: true }))
mkdirSync(join(home, 'config'))
writeFileSync(join(home, 'config/gateway.yaml'), 'runs: {max_waiting_total: 100000}\n')
const env = { ...process.env, SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'fatal' }
const { gateway } = await boot({ home, env })
const url = gateway.status.url('main') ?? ''

async function post(path: string, body: object): Promise<void> {
	const headers = { 'content-type': 'application/json' }
	// oxlint-disable-next-line no-restricted-globals -- the address is our own
	const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
	await response.arrayBuffer()
	if (!response.ok) throw new Error(`${path} was answered with ${response.status}`)
}

async function inLanes(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
	let next = 0
	const lane = async (): Promise<void> => {
		while (next < count) await work(next++)
	}
	await Promise.all(Array.from({ length: LANES }, lane))
}

const ended = { count: 0, waiters: [] as { count: number; resolve: () => void }[] }
let events = 0
gateway.events.subscribe({}, ({ event }) => {
	events++
	if (event.event_type !== 'run.completed') return
	ended.count++
	for (const { count, resolve } of ended.waiters) if (ended.count >= count) resolve()
})

/** Settles once `count` runs have completed since the start. */
function completed(count: number): Promise<void> {
	if (ended.count >= count) return Promise.resolve()
	const { promise, resolve } = Promise.withResolvers<void>()
	ended.waiters.push({ count, resolve })
	return promise
}

const startRun = (n: number): Promise<void> =>
	post(`/v1/agents/agent-${n % AGENTS}/runs`, { prompt: 'hello', conversation: `c-${n}` })

answerWith({
	url: () => url,
	async runs(count: number) {
		for (let n = 0; n < AGENTS; n++) await post('/v1/agents', { name: `agent-${n}` })
		await inLanes(count, startRun)
		await completed(count)
	},
	events: (count: number) =>
		inLanes(count, () => gateway.events.emit({ event_type: 'bench.tick', payload: { text: 'x'.repeat(100) } })),
	rows: () => rowsRead(),
	/** Starts runs at a steady rate. Returns the events per second. */
	async load({ seconds, runsPerSecond }: { seconds: number; runsPerSecond: number }) {
		const before = events
		const began = performance.now()
		const count = seconds * runsPerSecond
		const first = ended.count
		for (let n = 0; n < count; n++) {
			const due = began + (n * 1000) / runsPerSecond
			await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
			await startRun(n)
		}
		await completed(first + count)
		return ((events - before) * 1000) / (performance.now() - began)
	},
})
