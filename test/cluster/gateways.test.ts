/**
 * Several gateways on one cluster, each in its own process and with its own home. One works; the others wait and forward, and the next
 * one continues when it stops, is killed or is suspended for too long.
 *
 * CLUSTER_KILLS sets how many are killed before one is suspended (default 0).
 */
import t from 'tap'
import { openMembers, roleOf } from '../support/cluster-processes.ts'
import type { MemberProcess } from '../support/cluster-processes.ts'
import { send } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { providersAt } from '../support/providers.ts'
import { openStream } from '../support/sse.ts'
import type { TestStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.CLUSTER_KILLS ?? 0)
const SERVERS = process.env.SVC_TEST_CLUSTER === 'all' ? 3 : 1

void t.test('gateways on one cluster', { skip: withoutNats(), timeout: 300_000 + KILLS * 60_000 }, async (t) => {
	const [cluster, model] = await Promise.all([startNats(SERVERS), startManualModel()])
	const config = `
server: { shutdown_grace_s: 0 }
store: { url: '${cluster.url}', replicas: ${SERVERS} }
${providersAt({ held: model.url })}`
	const members = openMembers({ SVC_LOG_LEVEL: 'info' })
	t.teardown(async () => {
		await members.kill()
		await Promise.all([cluster[Symbol.asyncDispose](), model.stop()])
	})
	const start = () => members.start(members.newHome({ config }))
	const request = (gateway: MemberProcess, method: string, path: string, body?: unknown) =>
		send(gateway.url + path, method, { token, ...(body !== undefined && { body }) })
	let token = ''

	let current = await start()
	token = (await request(current, 'POST', '/v1/auth/tokens', { scopes: ['*'] })).body.token
	await request(current, 'POST', '/v1/agents', { name: 'anna' })
	await request(current, 'POST', '/v1/vault/secrets', { name: 'KEY', value: 'a value that nobody guesses' })
	const sequences: number[] = []
	let lastEventId = ''
	const listen = async (): Promise<TestStream> => {
		const stream = await openStream(current.url, {
			token,
			query: { agent_id: 'anna' },
			...(lastEventId && { lastEventId }),
		})
		void stream.closed.then(() => {
			sequences.push(...stream.events.flatMap((one) => (one.run_id === run ? one.sequence : [])))
			lastEventId = stream.lastEventId
			listened.resolve()
		})
		return stream
	}
	let listened = Promise.withResolvers<void>()
	let stream = await listen()
	const { run_id: run } = (await request(current, 'POST', '/v1/agents/anna/runs', { prompt: 'go' })).body
	const step = (n: number): string => JSON.stringify({ key: `step-${n}`, value: n })
	const first = await model.called('go', 1)
	first.callTool('memory_stm_write', step(1))

	const turns = [...Array.from({ length: KILLS }, () => 'killed'), 'suspended']
	for (const [at, how] of turns.entries()) {
		const n = at + 1
		await model.called('go', n + 1)
		// Its predecessor works on the data, so it forwards requests.
		const former = current
		const next = await start()
		t.equal((await request(next, 'GET', '/v1/agents/anna')).status, 200)
		t.same([roleOf(former.home), roleOf(next.home)], ['working', 'waiting'])
		if (how === 'killed') await former.kill()
		else former.child.kill('SIGSTOP')
		await eventually(() => roleOf(next.home) === 'working')
		current = next
		if (how === 'suspended') {
			former.child.kill('SIGCONT')
			await eventually(() => /has taken over the data.*waiting: the gateway/s.test(former.errors()))
			t.pass('it notices, and waits')
			await former.kill()
		}
		await listened.promise
		listened = Promise.withResolvers()
		stream = await listen()
		t.equal((await request(current, 'GET', '/v1/agents/anna')).status, 200, 'the token and the agent exist')
		// The interrupted call is repeated, and no earlier one.
		const again = await model.called('go', n + 2)
		const results = JSON.stringify(again.body).match(/step-\d+/g) ?? []
		t.equal(new Set(results).size, n, 'finished steps are not repeated')
		model.calls.splice(n, 1)
		again.callTool('memory_stm_write', step(n + 1))
	}
	;(await model.called('go', turns.length + 2)).answer('done')
	await stream.waitFor((event) => event.run_id === run && event.event_type === 'run.completed')
	t.equal((await request(current, 'GET', `/v1/runs/${run}`)).body.status, 'completed')
	const verbose = await send(`${current.url}/readyz?verbose`, 'GET', { token })
	t.match(verbose.body, /\[\+\]store ok: NATS at 127\.0\.0\.1:\d+.*, leader n\d/)

	if (SERVERS > 1) {
		// A gateway that stops releases the lease: no wait.
		const next = await start()
		t.equal(await current.end(), 0)
		current = next
	} else stream.close()
	await listened.promise
	const { events } = (await request(current, 'GET', `/v1/audit?run_id=${run}&limit=500`)).body
	const logged = (events as { sequence: number }[]).map(({ sequence }) => sequence)
	t.equal(new Set(logged).size, logged.length, 'the log has no event twice')
	// Pieces of answers are not logged.
	const shown = sequences.filter((sequence) => logged.includes(sequence))
	t.strictSame(
		shown,
		[...new Set(shown)].toSorted((a, b) => a - b),
		'each event was shown once, in order, by any gateway',
	)
	t.strictSame(new Set(shown), new Set(logged), 'all events were shown')
})
