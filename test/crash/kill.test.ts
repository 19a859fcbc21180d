/**
 * kill -9 at random moments while runs execute. Afterwards everything acknowledged is stored, every streamed event is in the log, every
 * run has ended, and no finished step was repeated.
 *
 * SVC_TEST_KILLS sets the number of kills (1).
 */
import { setTimeout as pause } from 'node:timers/promises'
import { LLMock } from '@copilotkit/aimock'
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { makeHome, send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import type { GatewayProcess } from '../support/process.ts'
import { wereRestartsInOneStep } from '../support/restarts.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.SVC_TEST_KILLS ?? 1)
const CLIENTS = 8
const STEPS = 4

interface ModelCall {
	run: string
	/** The number of the step: that of the tool results in the request. */
	step: number
	/** The number of kills before the calling gateway started. */
	kills: number
}

void t.test(`nothing acknowledged is lost through ${KILLS} kills`, { timeout: 300_000 + KILLS * 5_000 }, async (t) => {
	let kills = 0
	const calls: ModelCall[] = []
	const model = new LLMock({ port: 0, logLevel: 'silent' })
	model.on({ predicate: () => true }, (request) => {
		const promptAt = request.messages.findLastIndex(({ role }) => role === 'user')
		const run = /run-\d+-\d+/.exec(JSON.stringify(request.messages[promptAt]?.content))?.[0] ?? ''
		const step = request.messages.slice(promptAt).filter(({ role }) => role === 'tool').length
		calls.push({ run, step, kills: Number(request.model) })
		if (step === STEPS) return { content: `the end of ${run}` }
		return {
			toolCalls: [{ name: 'memory_stm_write', arguments: JSON.stringify({ key: `${run}-${step}`, value: null }) }],
		}
	})
	await model.start()
	t.teardown(() => model.stop())
	const home = makeHome({
		config: `providers:\n  mock:\n    kind: openai\n    base_url: ${model.url}/v1\n    api_key: test\n    model: "${'${KILLS}'}"\n`,
	})

	const acknowledged = { agents: new Set<string>(), tokens: new Set<string>(), runs: new Map<string, string>() }
	const streamed = new Map<string, EventEnvelope>()
	// The model's name tells which gateway made a call, even if it is read after that gateway was killed.
	const start = (): Promise<GatewayProcess> => spawnGateway(home, { KILLS: String(kills) })
	let gateway: GatewayProcess | null = await start()
	let finished = false
	let next = 0
	t.teardown(() => {
		finished = true // also after a failure
		return gateway?.kill()
	})

	/** Null if the gateway was killed during the request: nothing was acknowledged then. */
	const post = async (path: string, body: unknown): Promise<Record<string, string> | null> => {
		const target = gateway
		if (!target) {
			await pause(5)
			return null
		}
		const reply = await send(target.url + path, 'POST', { body }).catch(() => null)
		if (reply && reply.status >= 400) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
		return reply?.body ?? null
	}
	const client = async (number: number): Promise<void> => {
		const agent = `agent-${number}`
		while (!finished && !acknowledged.agents.has(agent)) {
			const made = await post('/v1/agents', { name: agent }).catch((error: unknown) => {
				if (String(error).includes('already_exists')) return { name: agent }
				throw error
			})
			if (made?.name) acknowledged.agents.add(made.name)
		}
		for (let round = 0; !finished; round++) {
			const prompt = `run-${number}-${next++}`
			const run = await post(`/v1/agents/${agent}/runs`, { prompt })
			if (run?.run_id) acknowledged.runs.set(run.run_id, prompt)
			if (round % 5 === 0) {
				const token = await post('/v1/auth/tokens', { scopes: ['agents:read'] })
				if (token?.id) acknowledged.tokens.add(token.id)
			}
			// A conversation executes one run at a time. This keeps its queue short.
			while (!finished && gateway && (await activeRuns(gateway.url, agent)) > 3) await pause(10)
		}
	}
	const watch = async (): Promise<void> => {
		let lastEventId = ''
		while (!finished) {
			const stream = gateway && (await openStream(gateway.url, lastEventId ? { lastEventId } : {}).catch(() => null))
			if (!stream) {
				await pause(5)
				continue
			}
			await stream.closed
			lastEventId = stream.lastEventId || lastEventId
			for (const event of stream.events) if (event.event_type !== 'model.stream') streamed.set(event.event_id, event)
		}
	}

	const working = Promise.all([watch(), ...Array.from({ length: CLIENTS }, (_, number) => client(number))])
	working.catch(() => {})
	while (kills < KILLS) {
		// Every fourth kill happens during the start. The others wait until the gateway works, so that runs make progress: a run that
		// three kills in a row interrupt in the same step fails, as documented.
		const before = calls.length
		if (kills % 4 !== 3) await Promise.race([eventually(() => calls.length >= before + CLIENTS), working])
		await Promise.race([pause(Math.random() * 300), working])
		const victim: GatewayProcess = gateway
		gateway = null
		await victim.kill()
		kills++
		gateway = await start()
	}
	finished = true
	await gateway.kill()
	kills++
	await working
	gateway = await start()
	const { url } = gateway

	const ended = new Map<string, Record<string, unknown>>()
	for (const run_id of acknowledged.runs.keys()) {
		const { status, body } = await eventually(
			() => send(`${url}/v1/runs/${run_id}`, 'GET'),
			(reply) => reply.status !== 200 || ['completed', 'failed', 'stopped'].includes(reply.body.status),
		)
		if (status !== 200) t.fail(`run ${run_id}: ${status}`)
		ended.set(run_id, body)
	}
	const completed = [...acknowledged.runs].filter(([run_id, prompt]) => {
		const run = ended.get(run_id)
		if (run?.status === 'completed' && run.answer === `the end of ${prompt}`) return true
		// Three kills in a row may interrupt the same step; any other end is wrong.
		if ((run?.error as { code?: string } | null)?.code !== 'restart_loop') t.fail(`${run_id}: ${JSON.stringify(run)}`)
		return false
	})
	t.ok(
		completed.length > acknowledged.runs.size * 0.8,
		`${completed.length} of ${acknowledged.runs.size} runs completed`,
	)

	t.comment(
		`${acknowledged.runs.size} runs, ${acknowledged.tokens.size} tokens, ${streamed.size} events streamed, ${calls.length} model calls`,
	)
	t.ok(acknowledged.runs.size > KILLS && calls.length > KILLS, 'the kills could interrupt work')

	const agents = new Set((await send(`${url}/v1/agents`, 'GET')).body.map(({ name }: { name: string }) => name))
	t.strictSame(
		[...acknowledged.agents].filter((name) => !agents.has(name)),
		[],
		'no agent is missing',
	)
	const tokens = new Set((await send(`${url}/v1/auth/tokens`, 'GET')).body.tokens.map(({ id }: { id: string }) => id))
	t.strictSame(
		[...acknowledged.tokens].filter((id) => !tokens.has(id)),
		[],
		'no token is missing',
	)

	const log = await readLog(url)
	const ids = new Set(log.map((event) => event.event_id))
	t.equal(ids.size, log.length, 'no event is stored twice')
	t.strictSame(
		[...streamed.keys()].filter((id) => !ids.has(id)),
		[],
		'every streamed event is in the log',
	)

	const byRun = Map.groupBy(
		log.filter((event) => event.run_id !== null),
		(event) => event.run_id ?? '',
	)
	const wrong: string[] = []
	const completedIds = new Set(completed.map(([run_id]) => run_id))
	for (const run_id of acknowledged.runs.keys()) {
		const events = byRun.get(run_id) ?? []
		const begin = events.filter((event) => event.event_type === 'run.started')
		if (
			begin.length !== 1 ||
			events[0]?.sequence !== 1 ||
			!['run.queued', 'run.started'].includes(events[0].event_type)
		)
			wrong.push(`${run_id} begins with ${events[0]?.event_type}`)
		if (events.some((event, at) => at > 0 && event.sequence <= (events[at - 1]?.sequence ?? 0)))
			wrong.push(`${run_id}: the sequence does not increase`)
		const ends = events.filter((event) => ['run.completed', 'run.failed', 'run.stopped'].includes(event.event_type))
		if (ends.length !== 1 || events.at(-1) !== ends[0]) wrong.push(`${run_id} has ${ends.length} ends`)
		const results = events
			.filter((event) => event.event_type === 'primitive.result')
			.map((event) => event.payload.call_id)
		if (new Set(results).size !== results.length || (completedIds.has(run_id) && results.length !== STEPS))
			wrong.push(`${run_id} has ${results.length} results of ${STEPS} calls`)
		if (ends[0]?.payload.code === 'restart_loop' && !wereRestartsInOneStep(events))
			wrong.push(`${run_id} failed with restart_loop too early`)
	}
	t.strictSame(wrong, [], 'every run begins once and ends once, and each call has one result')

	const repeated: string[] = []
	const inOrder = calls.toSorted((a, b) => a.kills - b.kills)
	for (const [run, made] of Map.groupBy(inOrder, (call) => call.run)) {
		for (const [at, call] of made.entries()) {
			const before = made[at - 1]
			if (!before) continue
			if (call.step < before.step) repeated.push(`${run}: step ${call.step} after step ${before.step}`)
			if (call.step === before.step && call.kills === before.kills)
				repeated.push(`${run}: step ${call.step} twice without a kill between`)
		}
	}
	t.strictSame(repeated, [], 'no finished step was repeated')
	t.equal(await gateway.end(), 0, 'the gateway exits with code 0')
})

async function activeRuns(url: string, agent: string): Promise<number> {
	const reply = await send(`${url}/v1/agents/${agent}/runs?limit=10`, 'GET').catch(() => null)
	return reply?.status === 200
		? reply.body.filter((run: { ended_at: string | null }) => run.ended_at === null).length
		: 0
}

/** All events of the log, oldest first. */
async function readLog(url: string): Promise<EventEnvelope[]> {
	const events: EventEnvelope[] = []
	let next: string | null = ''
	while (next !== null) {
		const path: string = `/v1/audit?limit=500${next && `&cursor=${encodeURIComponent(next)}`}`
		const page: { events: EventEnvelope[]; next_cursor: string | null } = (await send(url + path, 'GET')).body
		events.push(...page.events)
		next = page.next_cursor
	}
	return events.toReversed()
}
