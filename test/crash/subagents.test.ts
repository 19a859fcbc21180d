/**
 * kill -9 at random moments while runs wait for sub-agents and results are on their way. Afterwards: every run has come
 * to its end, each call started one sub-agent, and each of those was told and, where nobody waited, delivered once.
 *
 * SVC_TEST_KILLS sets the number of kills (1).
 */
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { makeHome, send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import type { GatewayProcess } from '../support/process.ts'
import { wereRestartsInOneStep } from '../support/restarts.ts'
import { WAIT_LIMIT_MS, eventually } from '../support/wait.ts'

const KILLS = Number(process.env.SVC_TEST_KILLS ?? 1)
const CLIENTS = 4

interface Run {
	run_id: string
	agent: string
	status: string
	conversation: string
	prompt: string
	ended_at: string | null
	parent_run_id: string | null
	error: { code: string } | null
}

const spawn = (prompt: string, wait: boolean): string => `/tool subagent.spawn ${JSON.stringify({ prompt, wait })}`
const work = (tag: string): string => `/tool memory.stm_write ${JSON.stringify({ key: tag, value: null })}`
/** Waits for one that waits for another, sends one off, waits for a last one. */
const promptOf = (tag: string): string =>
	[
		spawn(spawn(work(`${tag}-deep`), true), true),
		spawn(work(`${tag}-off`), false),
		spawn(work(`${tag}-last`), true),
	].join('\n')

void t.test(`sub-agents through ${KILLS} kills`, { timeout: 300_000 + KILLS * 10_000 }, async (t) => {
	const home = makeHome()
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
	let gateway: GatewayProcess | null = await spawnGateway(home)
	let finished = false
	t.teardown(() => {
		finished = true // also where its time is over in the middle of it
		return gateway?.kill()
	})
	const names = Array.from({ length: CLIENTS }, (_, n) => `agent-${n}`)
	for (const name of names) await send(`${gateway.url}/v1/agents`, 'POST', { body: { name } })

	const acknowledged = new Set<string>()
	const client = async (name: string): Promise<void> => {
		for (let round = 0; !finished; round++) {
			const url = gateway?.url
			const body = { prompt: promptOf(`${name}-${round}`) }
			const reply =
				url === undefined ? null : await send(`${url}/v1/agents/${name}/runs`, 'POST', { body }).catch(() => null)
			if (reply?.status === 200) acknowledged.add(reply.body.run_id)
			else if (reply) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`)
			else await pause(5)
			while (!finished && gateway && (await open(gateway.url, name)) > 1) await pause(10)
		}
	}
	const working = Promise.all(names.map(client))
	working.catch(() => {})
	for (let kill = 1; kill <= KILLS && !finished; kill++) {
		const before = acknowledged.size
		await Promise.race([eventually(() => acknowledged.size >= before + CLIENTS / 2), working])
		await Promise.race([pause(Math.random() * 250), working])
		const victim: GatewayProcess = gateway
		gateway = null
		await victim.kill()
		gateway = await spawnGateway(home)
	}
	finished = true
	await working
	const { url } = gateway

	// What is owed follows the ends, so it is waited for: that it comes at all is half of what is tested.
	const deadline = Date.now() + WAIT_LIMIT_MS
	let runs: Run[] = []
	let log: EventEnvelope[] = []
	let wrong = ['nothing was looked at']
	while (wrong.length > 0 && Date.now() < deadline) {
		await pause(100)
		runs = (await Promise.all(names.map((name) => runsOf(url, name)))).flat()
		if (runs.some((run) => run.ended_at === null)) continue
		log = (await Promise.all(names.map((name) => eventsOf(url, name)))).flat()
		wrong = problems(runs, log, acknowledged)
	}
	t.strictSame(wrong.slice(0, 20), [])
	t.ok(
		acknowledged.size >= KILLS,
		`${acknowledged.size} runs, ${runs.length} with all that came of them, ${log.length} events`,
	)
	t.equal(await gateway.end(), 0)
})

function problems(runs: Run[], log: EventEnvelope[], acknowledged: Set<string>): string[] {
	const wrong: string[] = []
	const byId = new Map(runs.map((run) => [run.run_id, run]))
	const children = Map.groupBy(runs.filter(isSubagent), (run) => run.parent_run_id)
	const count = (type: string, run_id: string): number =>
		log.filter((event) => event.event_type.startsWith(type) && event.payload.run_id === run_id).length

	for (const run_id of acknowledged) {
		const run = byId.get(run_id)
		if (!run) wrong.push(`${run_id} is gone`)
		else if (run.status === 'completed') {
			const made = children.get(run_id) ?? []
			if (made.length !== 3) wrong.push(`${run_id} has ${made.length} sub-agents of 3`)
		} else if (run.error?.code !== 'restart_loop') wrong.push(`${run_id}: ${run.status} ${JSON.stringify(run.error)}`)
	}
	for (const run of runs.filter(isSubagent)) {
		const about = `${run.run_id} (${run.status})`
		if (count('subagent.spawned', run.run_id) !== 1)
			wrong.push(`${about} was spawned ${count('subagent.spawned', run.run_id)} times`)
		const ends = count('subagent.completed', run.run_id) + count('subagent.failed', run.run_id)
		if (ends !== 1) wrong.push(`${about} ended ${ends} times`)
		const results = runs.filter((one) => one.prompt.includes(`<subagent_result run_id="${run.run_id}"`)).length
		const parent = byId.get(run.parent_run_id ?? '')
		const isDue = run.prompt.includes('-off') && run.status !== 'stopped' && parent?.status === 'completed'
		if (isDue ? results !== 1 : results > (run.prompt.includes('-off') ? 1 : 0))
			wrong.push(`${about} was delivered ${results} times`)
	}
	for (const [run_id, events] of Map.groupBy(log, (event) => event.run_id)) {
		if (run_id === null) continue
		const ends = events.filter((event) => /^run\.(completed|failed|stopped)$/.test(event.event_type))
		if (ends.length !== 1) wrong.push(`${run_id} has not one end`)
		if (ends[0]?.payload.code === 'restart_loop' && !wereRestartsInOneStep(events.toReversed()))
			wrong.push(`${run_id} was given up too soon`)
		const calls = events.filter((event) => /^primitive\.(result|failed)$/.test(event.event_type))
		if (new Set(calls.map((event) => event.payload.call_id)).size !== calls.length)
			wrong.push(`${run_id} has two results of one call`)
	}
	return wrong
}

function isSubagent(run: Run): boolean {
	return run.conversation.startsWith('subagent:') && !run.prompt.includes('<subagent_result')
}

async function open(url: string, name: string): Promise<number> {
	const reply = await send<Run[]>(`${url}/v1/agents/${name}/runs?limit=20`, 'GET').catch(() => null)
	return reply?.status === 200 ? reply.body.filter((run) => run.ended_at === null).length : 0
}

async function runsOf(url: string, name: string): Promise<Run[]> {
	const all: Run[] = []
	for (;;) {
		const before = all.at(-1)?.run_id
		const query = before === undefined ? '' : `&before=${before}`
		const { body } = await send<Run[]>(`${url}/v1/agents/${name}/runs?limit=500${query}`, 'GET')
		if (body.length === 0) return all
		all.push(...body)
	}
}

async function eventsOf(url: string, name: string): Promise<EventEnvelope[]> {
	const all: EventEnvelope[] = []
	let next: string | null = ''
	while (next !== null) {
		const path: string = `/v1/audit?agent_id=${name}&limit=500${next && `&cursor=${encodeURIComponent(next)}`}`
		const page: { events: EventEnvelope[]; next_cursor: string | null } = (await send(url + path, 'GET')).body
		all.push(...page.events)
		next = page.next_cursor
	}
	return all
}
