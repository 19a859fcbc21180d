/**
 * Gateways that lend threads are killed and suspended during many runs that call a tool.
 *
 * LENDER_KILLS sets how often (default 2).
 */
import t from 'tap'
import { STEPS, startChaosModel } from '../support/chaos-model.ts'
import { openMembers } from '../support/cluster-processes.ts'
import type { MemberProcess } from '../support/cluster-processes.ts'
import { send } from '../support/gateway.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { providersAt } from '../support/providers.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.LENDER_KILLS ?? 2)
const RUNS_A_KILL = 40
const LENDERS = 2
const MODEL_MS = 300
const ENDS = ['run.completed', 'run.failed', 'run.stopped']

void t.test(`${KILLS} losses of lenders`, { skip: withoutNats(), timeout: 120_000 + KILLS * 60_000 }, async (t) => {
	const [cluster, model] = await Promise.all([startNats(), startChaosModel(MODEL_MS)])
	const config = `
server: { shutdown_grace_s: 0 }
store: { url: '${cluster.url}', replicas: 1 }
workers: { threads: 1 }
mcp: { allowed_hosts: ['127.0.0.1'] }
${providersAt({ chaos: model.url })}`
	const members = openMembers()
	t.teardown(async () => {
		await members.kill()
		await cluster[Symbol.asyncDispose]()
		model.stop()
	})
	const start = (home = members.newHome({ config })) => members.start(home)
	const working = await start()
	const request = async (method: string, path: string, body?: unknown) =>
		send(working.url + path, method, { ...(body !== undefined && { body }) })
	await request('POST', '/v1/agents', { name: 'anna' })
	await request('POST', '/v1/agents/anna/mcp', { name: 'tools', transport: 'http', url: model.tools })
	const lenders = await Promise.all(Array.from({ length: LENDERS }, () => start()))
	/** The number of runs on each lender. */
	const runsByLender = async (): Promise<number[]> =>
		(await request('GET', '/v1/cluster')).body.gateways.flatMap(
			(one: { works: boolean; threads: number; runs: number }) => (!one.works && one.threads > 0 ? [one.runs] : []),
		)
	/** The same from the metrics, which do not query the other gateways: a run may end before those respond. */
	const runsInMetrics = async (): Promise<number[]> =>
		[...String((await request('GET', '/metrics')).body).matchAll(/^svc_lent_thread_runs\{.*\} (\d+)$/gm)].map(
			([, count]) => Number(count),
		)
	await eventually(async () => (await runsByLender()).length === LENDERS)
	const stream = await openStream(working.url, { query: { agent_id: 'anna' } })

	const runs: string[] = []
	const begin = async (): Promise<void> => {
		const n = runs.length
		const body = { prompt: `chaos ${n}`, conversation: `c-${n}` }
		runs[n] = ''
		runs[n] = (await request('POST', '/v1/agents/anna/runs', body)).body.run_id
	}
	for (let kill = 0; kill < KILLS; kill++) {
		await Promise.all(Array.from({ length: RUNS_A_KILL }, begin))
		const at = kill % LENDERS
		const lender = lenders[at] as MemberProcess
		await eventually(runsInMetrics, (counts) => counts.length === LENDERS && counts.every((count) => count > 0))
		if (kill % 2 === 0) {
			await lender.kill()
			lenders[at] = await start(lender.home)
		} else {
			lender.child.kill('SIGSTOP')
			await eventually(async () => (await runsByLender()).length < LENDERS)
			lender.child.kill('SIGCONT')
		}
		await eventually(async () => (await runsByLender()).length === LENDERS)
	}
	await eventually(
		() =>
			new Set(stream.events.flatMap(({ run_id, event_type }) => (ENDS.includes(event_type) ? (run_id ?? []) : [])))
				.size === runs.length,
	)
	stream.close()

	const lost = stream.events.filter(
		({ event_type, payload }) => event_type === 'run.resumed' && payload?.reason === 'restart',
	).length
	t.ok(lost > 0, `${lost} runs continued from their journals`)
	t.strictSame(model.repeated, [], 'no finished step was repeated')
	t.equal(model.asked.size, runs.length * (STEPS + 1))
	t.strictSame(
		[...model.noted].filter(([, calls]) => calls !== 1),
		[],
		'no call of the tool was made twice',
	)
	t.equal(new Set([...model.noted.keys(), ...model.interrupted]).size, runs.length * STEPS)
	const wrong: string[] = []
	for (const [n, run] of runs.entries()) {
		const { body } = await request('GET', `/v1/runs/${run}`)
		if (body.status !== 'completed' || body.answer !== `Well, done ${n}`) wrong.push(`run ${n}: ${body.status}`)
		const { events } = (await request('GET', `/v1/audit?run_id=${run}&limit=500`)).body
		const logged = (events as { sequence: number }[]).map(({ sequence }) => sequence).toSorted((a, b) => a - b)
		const shown = stream.events.flatMap((one) =>
			one.run_id === run && logged.includes(one.sequence as number) ? (one.sequence as number) : [],
		)
		if (new Set(logged).size !== logged.length) wrong.push(`run ${n}: the log has ${logged.join(' ')}`)
		if (shown.join(' ') !== logged.join(' '))
			wrong.push(`run ${n}: shown ${shown.join(' ')}, the log has ${logged.join(' ')}`)
	}
	t.strictSame(wrong, [], 'every run completed, and each event was shown once, in order')
})
