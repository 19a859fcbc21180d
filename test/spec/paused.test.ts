/**
 * Many paused runs: they need little memory, no thread and no processor time, and survive a restart.
 *
 * SVC_TEST_PAUSED is their number (default 100).
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { testFolder } from '../support/folder.ts'
import { send } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import type { GatewayProcess } from '../support/process.ts'
import { openStream } from '../support/sse.ts'

const RUNS = Number(process.env.SVC_TEST_PAUSED ?? 100)
const CLIENTS = 64
const WARM_UP_AGENTS = 10
const WARM_UP_RUNS = 200
const SAMPLE = 40
const GROWTH_LIMIT_MB = 100
/** Per window of `WINDOW_MS`, for timers and a late garbage collection. */
const IDLE_CPU_MS = 50

void t.test(`${RUNS} paused runs`, async (t) => {
	const home = testFolder(t)
	let gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const post = async (path: string, body: unknown): Promise<Answer> => {
		const reply = await send(gateway.url + path, 'POST', { body })
		if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	const get = async (path: string): Promise<Answer> => (await send(gateway.url + path, 'GET')).body

	await inParallel(WARM_UP_AGENTS, (n) => post('/v1/agents', { name: `other-${n}` }))
	const ends = await openStream(gateway.url, { query: { event_type: 'run.completed' } })
	await inParallel(WARM_UP_RUNS, (n) => post(`/v1/agents/other-${n % WARM_UP_AGENTS}/runs`, { prompt: 'Hello.' }))
	await ends.waitFor('run.completed', WARM_UP_RUNS)
	const idle = await costWhenIdle(gateway)

	const began = performance.now()
	const pauses = await openStream(gateway.url, { query: { event_type: 'run.paused' } })
	const runs: string[] = []
	await inParallel(RUNS, async (n) => {
		await post('/v1/agents', { name: `agent-${n}` })
		runs[n] = (await post(`/v1/agents/agent-${n}/runs`, { prompt: `/tool ask {"question":"Go on, ${n}?"}` })).run_id
	})
	await pauses.waitFor('run.paused', RUNS)
	t.strictSame(new Set(pauses.events.map((event) => event.run_id)), new Set(runs), 'all of them are paused')
	pauses.close()
	t.comment(`paused after ${Math.round(performance.now() - began)} ms`)

	await post('/v1/agents/other-0/runs', { prompt: 'Still there?' })
	await ends.waitFor('run.completed', WARM_UP_RUNS + 1)
	t.pass('another run completes meanwhile')
	ends.close()

	const full = await costWhenIdle(gateway)
	t.comment(
		`memory ${idle.rss_mb} MB idle, ${full.rss_mb} MB with paused runs (anonymous ${idle.anon_mb}, ${full.anon_mb})`,
	)
	t.ok(full.rss_mb - idle.rss_mb < GROWTH_LIMIT_MB, `memory grew by ${full.rss_mb - idle.rss_mb} MB`)
	t.ok(full.cpu_ms <= IDLE_CPU_MS, `${full.cpu_ms} ms of processor time in ${WINDOW_MS} ms`)

	t.equal(await gateway.end(), 0)
	gateway = await spawnGateway(home)
	const again = await costWhenIdle(gateway)
	t.comment(`ready again after ${Math.round(gateway.ready_ms)} ms with ${again.rss_mb} MB`)
	t.ok(again.rss_mb - idle.rss_mb < GROWTH_LIMIT_MB, 'they do not cost more after a restart')

	const answered = await openStream(gateway.url, { query: { event_type: 'run.completed' } })
	const chosen = Array.from({ length: SAMPLE }, (_, n) => Math.floor((n * RUNS) / SAMPLE))
	for (const n of chosen) {
		const run = await get(`/v1/runs/${runs[n]}`)
		t.match(run, { status: 'paused', agent: `agent-${n}`, question: { question: `Go on, ${n}?` } })
		const path = `/v1/agents/agent-${n}/ask-responses/${run.question.question_id}`
		t.match(await post(path, { answer: `yes, ${n}` }), { status: 'answered' })
	}
	await answered.waitFor('run.completed', SAMPLE)
	answered.close()
	for (const n of chosen)
		t.match(await get(`/v1/runs/${runs[n]}`), { status: 'completed', answer: new RegExp(`yes, ${n}`) })
	t.match(await get(`/v1/runs/${runs[1]}`), { status: 'paused' }, 'the others stay paused')
	t.equal(await gateway.end(), 0)
})

async function inParallel(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
	let next = 0
	const client = async (): Promise<void> => {
		for (let n = next++; n < count; n = next++) await work(n)
	}
	await Promise.all(Array.from({ length: CLIENTS }, client))
}

interface Cost {
	rss_mb: number
	/** Without pages of files, such as those of the database. */
	anon_mb: number
	/** Processor time of all threads within the last window. */
	cpu_ms: number
}

const WINDOW_MS = 500
const TICK_MS = 10
const MAX_WINDOWS = 120

/** Waits until the process is idle, at most 60 s, and returns its cost in the last window. */
async function costWhenIdle({ pid }: GatewayProcess): Promise<Cost> {
	for (let window = 1; ; window++) {
		const before = cpuOf(pid)
		await pause(WINDOW_MS)
		const cpu_ms = cpuOf(pid) - before
		if (cpu_ms > IDLE_CPU_MS && window < MAX_WINDOWS) continue
		const status = readFileSync(`/proc/${pid}/status`, 'utf8')
		const mb = (field: string): number =>
			Math.round(Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024)
		return { rss_mb: mb('VmRSS'), anon_mb: mb('RssAnon'), cpu_ms }
	}
}

/** User and system time of a process, see proc(5): fields 14 and 15, in ticks, after a name that may contain spaces. */
function cpuOf(pid: number): number {
	const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
	return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
