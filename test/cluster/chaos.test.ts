/**
 * Three servers, three gateways and clients of all of them, while gateways and servers are killed at random, and the gateway that
 * works is suspended for longer than its lease.
 *
 * SVC_CLUSTER_CHAOS sets the number of kills, such as 20; there are 25 runs a kill.
 */
import { cpSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { STEPS, startChaosModel } from '../support/chaos-model.ts'
import { roleOf } from '../support/cluster-processes.ts'
import { makeHome, send } from '../support/gateway.ts'
import type { Answer, Reply } from '../support/gateway.ts'
import { freePort } from '../support/free-ports.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { spawnGateway } from '../support/process.ts'
import type { GatewayProcess } from '../support/process.ts'
import { providersAt } from '../support/providers.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.SVC_CLUSTER_CHAOS ?? 0)
const RUNS_A_KILL = 25
const AGENTS = 10
const GATEWAYS = 3
const CLIENTS = 3
const MODEL_MS = 60
/** Limit for all runs to end after the last kill. */
const END_MS = 180_000

const skip = KILLS > 0 ? withoutNats() : 'it takes long: SVC_CLUSTER_CHAOS=20'
const randomOf = <T>(among: readonly T[]): T => among[Math.floor(Math.random() * among.length)] as T

void t.test(`${KILLS} kills of gateways and servers`, { skip, timeout: 600_000 + KILLS * 60_000 }, async (t) => {
	const [cluster, model] = await Promise.all([startNats(3), startChaosModel(MODEL_MS)])
	const config = `
server: { shutdown_grace_s: 0 }
store: { url: '${cluster.url}' }
workers: { threads: 1 }
mcp: { allowed_hosts: ['127.0.0.1'] }
${providersAt({ chaos: model.url })}`
	interface Node {
		home: string
		port: number
		process: GatewayProcess
	}
	const nodes: Node[] = []
	let isOver = false
	t.teardown(async () => {
		isOver = true
		await Promise.all(nodes.map((node) => node.process.kill().catch(() => {})))
		await cluster[Symbol.asyncDispose]()
		model.stop()
	})
	const start = ({ home, port }: Pick<Node, 'home' | 'port'>): Promise<GatewayProcess> =>
		spawnGateway(home, { SVC_PORT: String(port), SVC_LOG_LEVEL: 'info' })
	for (let at = 0; at < GATEWAYS; at++) {
		const node = { home: makeHome({ config }), port: await freePort() }
		if (nodes[0]) cpSync(join(nodes[0].home, 'keys'), join(node.home, 'keys'), { recursive: true })
		nodes.push({ ...node, process: await start(node) })
	}
	/** Restarts a gateway that ends by itself, as a supervisor does. */
	const supervise = (node: Node): void => {
		const { process } = node
		void once(process.child, 'exit').then(async ([code, signal]) => {
			if (signal === 'SIGKILL' || isOver) return
			t.comment(`a gateway ended with ${code ?? signal}: ${process.errors().trim().split('\n').slice(-3).join(' | ')}`)
			for (;;) {
				const again = await start(node).catch((error: Error) => t.comment(error.message))
				if (again) node.process = again
				if (again || isOver) break
			}
			supervise(node)
		})
	}
	nodes.forEach(supervise)
	let refused = 0
	/** Sends a request to any gateway, and repeats it until there is an answer other than 503. */
	const request = async (method: string, path: string, body?: unknown, key?: string): Promise<Reply<Answer>> => {
		for (;;) {
			const headers = { ...(key !== undefined && { 'idempotency-key': key }) }
			const url = `http://127.0.0.1:${randomOf(nodes).port}${path}`
			const reply = await send(url, method, { headers, ...(body !== undefined && { body }) }).catch(() => null)
			if (reply && reply.status !== 503) return reply
			refused++
			if (isOver) throw new Error(`${method} ${path} had no answer`)
			await pause(200)
		}
	}
	const agents = Array.from({ length: AGENTS }, (_, at) => `agent-${at}`)
	for (const name of agents) {
		await request('POST', '/v1/agents', { name })
		const added = await request('POST', `/v1/agents/${name}/mcp`, {
			name: 'tools',
			transport: 'http',
			url: model.tools,
		})
		if (added.status !== 201) throw new Error(JSON.stringify(added.body))
	}

	const clients = Array.from({ length: CLIENTS }, () =>
		follow(
			() => randomOf(nodes).port,
			() => isOver,
		),
	)
	await Promise.all(clients.map(({ began }) => began))

	const runs = new Map<number, string>()
	const records: string[] = []
	const startRuns = (from: number): Promise<void> =>
		Promise.all(
			Array.from({ length: RUNS_A_KILL }, async (_, at) => {
				await pause(at * 100)
				const n = from + at
				const body = { prompt: `chaos ${n}`, conversation: `c-${n}` }
				const reply = await request('POST', `/v1/agents/${agents[n % AGENTS]}/runs`, body, `key-${n}`)
				if (reply.status >= 300) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`)
				runs.set(n, reply.body.run_id)
				const name = `record-${n}`
				const { status } = await request('POST', '/v1/agents', { name })
				// A repeated request finds what the first one stored.
				if (status === 201 || status === 409) records.push(name)
			}),
		).then(() => {})

	const working = (): Node | undefined =>
		nodes.find(({ process, home }) => process.child.exitCode === null && roleOf(home) === 'working')
	const ends = (): number => Math.max(...clients.map(({ ended }) => ended.size))
	const happened: string[] = []
	const suspendAt = Math.ceil(KILLS / 2)
	let late = ''
	for (let kill = 1; kill <= KILLS; kill++) {
		const before = ends()
		const starting = startRuns((kill - 1) * RUNS_A_KILL)
		await eventually(() => ends() > before, Boolean, END_MS)
		await pause(Math.random() * 2_000)
		if (kill === suspendAt) {
			const node = (await eventually(working)) as Node
			const at = node.process.errors().length
			node.process.child.kill('SIGSTOP')
			await eventually(() => nodes.some((other) => other !== node && roleOf(other.home) === 'working'))
			node.process.child.kill('SIGCONT')
			await eventually(() => /has taken over.*waiting: the gateway/s.test(node.process.errors().slice(at)))
			late = node.process.errors().slice(at)
			happened.push('suspended')
		}
		const turn = Math.random()
		if (turn < 0.4) {
			const server = randomOf(cluster.nodes)
			await server.kill()
			await pause(Math.random() * 3_000)
			await server.start()
			happened.push(`server ${server.name}`)
		} else {
			const node = (turn < 0.8 && working()) || randomOf(nodes)
			const role = roleOf(node.home)
			await node.process.kill()
			// Sometimes another one takes over before this one is back.
			if (Math.random() < 0.5)
				await eventually(() => nodes.some((other) => other !== node && roleOf(other.home) === 'working'))
			node.process = await start(node)
			supervise(node)
			happened.push(`gateway (${role})`)
		}
		await starting
		t.comment(`${kill}: ${happened.at(-1)}; ${ends()} of ${runs.size} runs have ended; ${refused} requests repeated`)
	}

	t.comment(happened.join(', '))
	const statuses = new Map<string, number>()
	for (const [n, run] of runs) {
		const { body } = await eventually(
			() => request('GET', `/v1/runs/${run}`),
			({ body: { status } }) => ['completed', 'failed', 'stopped'].includes(status),
			END_MS,
		)
		statuses.set(body.status, (statuses.get(body.status) ?? 0) + 1)
		if (body.status !== 'completed') t.fail(`run ${n} ${body.status}`, { found: body })
		else if (body.answer !== `Well, done ${n}`) t.fail(`run ${n} answered ${body.answer}`)
	}
	t.strictSame([...statuses], [['completed', KILLS * RUNS_A_KILL]], 'every acknowledged run exists, and is completed')
	t.equal(new Set(runs.values()).size, KILLS * RUNS_A_KILL)

	let missing = 0
	for (const name of records) if ((await request('GET', `/v1/agents/${name}`)).status !== 200) missing++
	t.equal(missing, 0, `each of ${records.length} acknowledged records exists`)

	t.strictSame(model.repeated, [], 'no finished step was repeated')
	const countsOf = (counts: Map<string, number>): string =>
		`${counts.size} steps, ${[...counts.values()].reduce((sum, count) => sum + count, 0)} calls`
	t.comment(`model: ${countsOf(model.asked)}; tool: ${countsOf(model.noted)}`)
	t.equal(model.asked.size, KILLS * RUNS_A_KILL * (STEPS + 1))
	t.comment(`calls with an unknown outcome: ${model.interrupted.size}`)
	t.equal(new Set([...model.noted.keys(), ...model.interrupted]).size, KILLS * RUNS_A_KILL * STEPS)
	t.ok(
		[...model.noted].every(([, calls]) => calls === 1),
		'no call of the tool was made twice',
	)

	await eventually(
		() => clients.every(({ ended }) => [...runs.values()].every((run) => ended.has(run))),
		Boolean,
		END_MS,
	)
	const wrong: string[] = []
	let events = 0
	for (const [n, run] of runs) {
		const logged = (await request('GET', `/v1/audit?run_id=${run}&limit=500`)).body.events.map(
			({ sequence }: { sequence: number }) => sequence,
		) as number[]
		const inOrder = logged.toSorted((a, b) => a - b)
		events += inOrder.length
		if (new Set(logged).size !== logged.length) wrong.push(`run ${n}: the log has ${inOrder.join(' ')}`)
		for (const [at, client] of clients.entries()) {
			const shown = client.sequences(run).filter((sequence) => inOrder.includes(sequence))
			if (shown.join(' ') !== inOrder.join(' '))
				wrong.push(`run ${n}: client ${at} saw ${shown.join(' ')}, the log has ${inOrder.join(' ')}`)
		}
	}
	t.strictSame(wrong, [], `each client saw each of ${events} events once, in order`)
	t.comment(`clients connected ${clients.map(({ connections }) => connections()).join(', ')} times`)
	if (suspendAt > 0) t.match(late, /has taken over/, 'the suspended gateway noticed')
	isOver = true
	for (const client of clients) client.close()
})

/** A client of all events that connects to any gateway, and reconnects. */
function follow(port: () => number, isOver: () => boolean) {
	const byRun = new Map<string, number[]>()
	const ended = new Set<string>()
	const began = Promise.withResolvers<void>()
	let connections = 0
	let close = (): void => {}
	const loop = async (): Promise<void> => {
		let lastEventId = ''
		while (!isOver()) {
			try {
				const stream = await openStream(`http://127.0.0.1:${port()}`, lastEventId ? { lastEventId } : {})
				connections++
				close = () => stream.close()
				began.resolve()
				let read = 0
				const readEvents = (): void => {
					for (; read < stream.events.length; read++) {
						const { run_id, sequence, event_type } = stream.events[read] as {
							run_id?: string | null
							sequence: number
							event_type: string
						}
						if (!run_id) continue
						byRun.set(run_id, [...(byRun.get(run_id) ?? []), sequence])
						if (/^run\.(completed|failed|stopped)$/.test(event_type)) ended.add(run_id)
					}
				}
				const timer = setInterval(readEvents, 100)
				await stream.closed
				clearInterval(timer)
				readEvents()
				lastEventId = stream.lastEventId
			} catch {
				await pause(200)
			}
		}
	}
	void loop()
	return {
		ended,
		began: began.promise,
		sequences: (run: string) => byRun.get(run) ?? [],
		connections: () => connections,
		close: () => close(),
	}
}
