/**
 * kill -9 while heartbeats are due. Afterwards each beat has one event, and has started at most one run.
 *
 * SVC_TEST_KILLS sets the number of kills (1, since spec/heartbeats.test.ts tests most moments that a kill can hit).
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { makeHome, send, startGateway } from '../support/gateway.ts'
import { changeHeartbeats } from '../support/heartbeats.ts'
import { spawnGateway } from '../support/process.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.SVC_TEST_KILLS ?? 1)
const AGENTS = 12
/** A kill happens within this time after the start. */
const WINDOW_MS = 60

void t.test(`each beat happens once through ${KILLS} kills`, { timeout: 300_000 + KILLS * 10_000 }, async (t) => {
	const home = makeHome({ config: 'server:\n  shutdown_grace_s: 0\n' }, t)
	const names = Array.from({ length: AGENTS }, (_, n) => `a${n}`)
	// Only the gateway that is killed needs a separate process.
	let gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const call = (method: string, path: string, body?: unknown) =>
		send(`${gateway.url}/v1/${path}`, method, body === undefined ? {} : { body })
	for (const name of names) {
		await call('POST', 'agents', { name })
		await call('POST', `agents/${name}/heartbeats`, { every: '1h', prompt: 'beat' })
	}

	for (let kill = 1; kill <= KILLS; kill++) {
		await gateway.stop()
		const next_at = new Date(Date.now() - 60_000).toISOString()
		await changeHeartbeats(home, () => ({ next_at }))
		const victim = await spawnGateway(home)
		await pause(Math.random() * WINDOW_MS)
		await victim.kill()
		gateway = await startGateway({ home })
		for (const name of names) {
			await eventually(
				() => call('GET', `agents/${name}/heartbeats`),
				({ body }) => Date.parse(body[0].next_at) > Date.now(),
			)
			const runs = (await call('GET', `agents/${name}/runs?limit=500`)).body
			const { events } = (await call('GET', `audit?agent_id=${name}&event_type=heartbeat.*&limit=500`)).body
			const beatEvents = events.filter((event: { event_type: string }) => event.event_type !== 'heartbeat.created')
			const dueTimes = new Set(beatEvents.map(({ payload }: { payload: { due_at: string } }) => payload.due_at))
			const started = beatEvents.flatMap(({ payload }: { payload: { run_id?: string } }) => payload.run_id ?? [])
			t.equal(beatEvents.length, kill, `${name}: each beat has an event`)
			t.equal(dueTimes.size, kill, `${name}: and only one`)
			t.strictSame(
				started.toSorted(),
				runs.map(({ run_id }: { run_id: string }) => run_id).toSorted(),
				`${name}: the events name all runs`,
			)
		}
	}
})
