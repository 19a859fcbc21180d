/** kill -9 while hundreds of runs wait for a place: those behind the first `LIMIT` have a record and no events yet. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { deliver, makeHook } from '../plugins/webhooks/sender.ts'
import { endedRun } from '../support/ended-run.ts'
import { apiOf, makeHome, startHere } from '../support/gateway.ts'
import type { Answer, KillableGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { spawnGateway } from '../support/process.ts'
import { providersAt } from '../support/providers.ts'

/** As in plugins/runs/begin.ts. */
const LIMIT = 256
const AT_ONCE = 32

void t.test('deliveries that wait behind many runs have their runs after a kill', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const config = `
server: { shutdown_grace_s: 0 }
default_provider: offline
${providersAt({ mock: model.url })}  offline: { kind: offline }
`
	const home = makeHome({ config: `${config}workers: { threads: 1, runs_per_thread: 1 }\n` }, t)
	let gateway: KillableGateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const api = apiOf(() => gateway)
	const hook = await makeHook(api, 'ada')
	// They occupy the only place and the reserve.
	for (const name of ['first', 'second']) {
		await api.request('POST', '/v1/agents', { body: { name, config: { provider: 'mock' } } })
		await api.request('POST', `/v1/agents/${name}/runs`, { body: { prompt: name } })
		await model.called(name)
	}
	const deliveries: string[] = []
	for (let at = 0; at <= LIMIT; at += AT_ONCE) {
		const replies = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => deliver(api, hook, { n: at + n })))
		t.ok(replies.every(({ status }) => status === 200))
		deliveries.push(...replies.map(({ body }) => body.delivery_id))
	}
	const typesOf = async (run_id: string): Promise<string[]> => {
		const { body } = await api.request('GET', `/v1/audit?run_id=${run_id}`)
		return body.events.map((event: EventEnvelope) => event.event_type).toReversed()
	}
	const list = (): Promise<{ body: Answer[] }> => api.request('GET', `${hook.path}/deliveries?limit=500`)
	const [last] = (await list()).body
	t.strictSame(await typesOf(last.run_id), [])

	await gateway.kill()
	writeFileSync(join(home, 'config/gateway.yaml'), config)
	gateway = await startHere(home)
	const { body } = await list()
	const kept: string[] = body.map((one) => one.delivery_id)
	t.strictSame(kept.toSorted(), deliveries.toSorted())
	for (const { run_id } of body) t.equal((await endedRun(gateway.url, run_id)).status, 'completed')
	const types = await typesOf(last.run_id)
	t.strictSame(types.slice(0, 2), ['webhook.accepted', 'run.started'])
	t.notOk(types.includes('run.resumed'))
})
