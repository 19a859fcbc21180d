/**
 * kill -9 at random moments while runs wait for sub-agents and results are being delivered. Afterwards every run has ended, each call
 * started one sub-agent, whose end has one event, and whose result was delivered once if the call did not wait for it.
 *
 * SVC_TEST_KILLS sets the number of kills (1).
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { testFolder } from '../support/folder.ts'
import { send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import type { GatewayProcess } from '../support/process.ts'
import { wereRestartsInOneStep } from '../support/restarts.ts'
import { eventually } from '../support/wait.ts'

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

const spawnCall = (prompt: string, wait: boolean): string => `/tool subagent.spawn ${JSON.stringify({ prompt, wait })}`
const writeCall = (tag: string): string => `/tool memory.stm_write ${JSON.stringify({ key: tag, value: null })}`
/** Calls three sub-agents: waits for the first, which waits for another one; not for the second; and for the last. */
const promptOf = (tag: string): string =>
	[
		spawnCall(spawnCall(writeCall(`${tag}-deep`), true), true),
		spawnCall(writeCall(`${tag}-off`), false),
		spawnCall(writeCall(`${tag}-last`), true),
	].join('\n')

void t.test(
	`each sub-agent runs and is delivered once through ${KILLS} kills`,
	{ timeout: 300_000 + KILLS * 10_000 },
	async (t) => {
		const home = testFolder(t)
		let gateway: GatewayProcess | null = await spawnGateway(home)
		let finished = false
		t.teardown(() => {
			finished = true // also after a timeout
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
				while (!finished && gateway && (await openRuns(gateway.url, name)) > 1) await pause(10)
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

		// Results are delivered after the runs have ended.
		let runs: Run[] = []
		let log: EventEnvelope[] = []
		const found = await eventually(
			async () => {
				runs = (await Promise.all(names.map((name) => runsOf(url, name)))).flat()
				if (runs.some((run) => run.ended_at === null)) return ['runs have not ended']
				log = (await Promise.all(names.map((name) => eventsOf(url, name)))).flat()
				return problems(runs, log, acknowledged).slice(0, 20)
			},
			({ length }) => length === 0,
		)
		t.strictSame(found, [])
		t.ok(
			acknowledged.size >= KILLS,
			`${acknowledged.size} runs, ${runs.length} with sub-agents and deliveries, ${log.length} events`,
		)
		t.equal(await gateway.end(), 0)
	},
)

function problems(runs: Run[], log: EventEnvelope[], acknowledged: Set<string>): string[] {
	const wrong: string[] = []
	const byId = new Map(runs.map((run) => [run.run_id, run]))
	const children = Map.groupBy(runs.filter(isSubagent), (run) => run.parent_run_id)
	const count = (type: string, run_id: string): number =>
		log.filter((event) => event.event_type.startsWith(type) && event.payload.run_id === run_id).length

	for (const run_id of acknowledged) {
		const run = byId.get(run_id)
		if (!run) wrong.push(`${run_id} is missing`)
		else if (run.status === 'completed') {
			const spawned = children.get(run_id) ?? []
			if (spawned.length !== 3) wrong.push(`${run_id} has ${spawned.length} sub-agents of 3`)
		} else if (run.error?.code !== 'restart_loop') wrong.push(`${run_id}: ${run.status} ${JSON.stringify(run.error)}`)
	}
	for (const run of runs.filter(isSubagent)) {
		const about = `${run.run_id} (${run.status})`
		if (count('subagent.spawned', run.run_id) !== 1)
			wrong.push(`${about} was spawned ${count('subagent.spawned', run.run_id)} times`)
		const ends = count('subagent.completed', run.run_id) + count('subagent.failed', run.run_id)
		if (ends !== 1) wrong.push(`${about} ended ${ends} times`)
		const results = runs.filter(({ prompt }) => prompt.includes(`<subagent_result run_id="${run.run_id}"`)).length
		const parent = byId.get(run.parent_run_id ?? '')
		const isDue = run.prompt.includes('-off') && run.status !== 'stopped' && parent?.status === 'completed'
		if (isDue ? results !== 1 : results > (run.prompt.includes('-off') ? 1 : 0))
			wrong.push(`${about} was delivered ${results} times`)
	}
	for (const [run_id, events] of Map.groupBy(log, (event) => event.run_id)) {
		if (run_id === null) continue
		const ends = events.filter((event) => /^run\.(completed|failed|stopped)$/.test(event.event_type))
		if (ends.length !== 1) wrong.push(`${run_id} has ${ends.length} ends`)
		if (ends[0]?.payload.code === 'restart_loop' && !wereRestartsInOneStep(events.toReversed()))
			wrong.push(`${run_id} failed with restart_loop too early`)
		const calls = events.filter((event) => /^primitive\.(result|failed)$/.test(event.event_type))
		if (new Set(calls.map((event) => event.payload.call_id)).size !== calls.length)
			wrong.push(`${run_id} has two results of one call`)
	}
	return wrong
}

function isSubagent(run: Run): boolean {
	return run.conversation.startsWith('subagent:') && !run.prompt.includes('<subagent_result')
}

async function openRuns(url: string, name: string): Promise<number> {
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
