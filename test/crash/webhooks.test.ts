/**
 * kill -9 while deliveries arrive, whose senders retry until they get a 200. Afterwards every 200 has its delivery and its run, and no id
 * of a sender has two deliveries.
 *
 * SVC_TEST_KILLS sets the number of kills (1).
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { deliver, makeHook } from '../plugins/webhooks/sender.ts'
import { endedRun } from '../support/ended-run.ts'
import { apiOf, makeHome, startHere } from '../support/gateway.ts'
import type { Answer, KillableGateway } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { ongoingRunsEnd } from '../support/restarts.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.SVC_TEST_KILLS ?? 1)
const SENDERS = 8
/** Accepted deliveries before the next kill. */
const BETWEEN = 12
/** A kill happens within this time after them. */
const WINDOW_MS = 30

void t.test(
	`deliveries survive ${KILLS} kill${KILLS > 1 ? 's' : ''}`,
	{ timeout: 300_000 + KILLS * 10_000 },
	async (t) => {
		const home = makeHome({ config: 'server:\n  shutdown_grace_s: 0\nwebhooks:\n  per_minute: 1000000\n' }, t)
		let gateway: KillableGateway = await spawnGateway(home)
		t.teardown(() => gateway.kill())
		const api = apiOf(() => gateway)
		const hook = await makeHook(api, 'ada')

		/** The delivery ids of all answers with 200, by the sender's id. */
		const accepted = new Map<string, Set<string>>()
		const otherStatuses = new Set<number>()
		let finished = false
		t.teardown(() => (finished = true)) // also after a failure
		let next = 0
		const attempt = async (id: string): Promise<boolean> => {
			const reply = await deliver(api, hook, { id }, { 'x-delivery-id': id }).catch(() => null)
			if (!reply) return false
			if (reply.status !== 200) otherStatuses.add(reply.status)
			else accepted.set(id, (accepted.get(id) ?? new Set()).add(reply.body.delivery_id))
			return reply.status === 200
		}
		const sender = async (): Promise<void> => {
			while (!finished) {
				const id = `sent-${next++}-`
				await eventually(() => attempt(id))
				if (next % 3 === 0) await attempt(id) // a sender that missed the answer
			}
		}
		const work = Promise.all(Array.from({ length: SENDERS }, sender))
		work.catch(() => {})
		for (let kill = 0; kill < KILLS; kill++) {
			// Otherwise the next kills may hit the same step of a run, which then fails with restart_loop.
			if (kill % 2 === 1) await ongoingRunsEnd(gateway.url)
			const before = accepted.size
			await Promise.race([eventually(() => accepted.size >= before + BETWEEN), work])
			await pause(Math.random() * WINDOW_MS)
			await gateway.kill()
			gateway = await (kill < KILLS - 1 ? spawnGateway(home) : startHere(home))
		}
		finished = true
		await work

		t.strictSame([...otherStatuses], [], 'a sender gets 200 or no answer')
		const paged = async (path: string, idOf: (one: Answer) => string): Promise<Answer[]> => {
			const all: Answer[] = []
			for (let before = ''; ;) {
				const { body } = await api.request('GET', `${path}?limit=500${before && `&before=${before}`}`)
				if (body.length === 0) return all
				all.push(...body)
				before = idOf(body.at(-1))
			}
		}
		const deliveries: { delivery_id: string; run_id: string }[] = await paged(
			`${hook.path}/deliveries`,
			(one) => one.delivery_id,
		)
		const all: { run_id: string; trigger: string; prompt: string }[] = await paged(
			'/v1/agents/ada/runs',
			(one) => one.run_id,
		)
		const runs = all.filter((run) => run.trigger === 'webhook')
		t.equal(accepted.size, next)
		t.ok(
			[...accepted.values()].every((ids) => ids.size === 1),
			'the same id gets the same delivery',
		)
		t.strictSame(
			deliveries.map((one) => one.delivery_id).toSorted(),
			[...accepted.values()].flatMap((ids) => [...ids]).toSorted(),
			'exactly the accepted deliveries are stored',
		)
		t.strictSame(
			deliveries.map((one) => one.run_id).toSorted(),
			runs.map((run) => run.run_id).toSorted(),
			'each delivery has its run',
		)
		for (const id of accepted.keys())
			t.equal(runs.filter((run) => run.prompt.includes(`"${id}"`)).length, 1, `${id} started one run`)
		const [listed] = (await api.request('GET', '/v1/agents/ada/webhooks')).body
		t.equal(listed.delivery_count, next)
		for (const { run_id } of runs) t.equal((await endedRun(gateway.url, run_id)).status, 'completed')
	},
)
